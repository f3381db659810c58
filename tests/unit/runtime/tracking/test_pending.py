"""Pending messages against a dict of them."""

from __future__ import annotations

import gc
import pickle
import weakref
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storm_on_spark.runtime.tracking import pending as pending_module
from storm_on_spark.runtime.tracking.pending import PendingMessages


def py(value: Any) -> Any:
    return value.as_py() if isinstance(value, pa.Scalar) else value


def end(pending: PendingMessages, numbers: list[int]) -> list[tuple[Any, float, int]]:
    """What ended: (id, time of emit, number)."""
    return [
        (py(message_id), float(when), numbers[where])
        for ended in pending.end(np.array(numbers, np.int64))
        for message_id, when, where in zip(ended.ids, ended.times, ended.where.tolist(), strict=True)
    ]


@pytest.mark.parametrize("arrow", [False, True])
@settings(deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60))
def test_it_is_what_a_dict_would_be(arrow: bool, seed: int, steps: int) -> None:
    random, pending = Random(seed), PendingMessages()
    patch = pytest.MonkeyPatch()
    patch.setattr(pending_module, "LEAST", 3)
    patch.setattr(pending_module, "FEW", 2)
    model: dict[int, tuple[int, float]] = {}
    #: Ids of each cut by its first number, as the log has them.
    log: dict[int, list[int]] = {}
    #: Numbers before it are not in the log.
    floor, uncut, following = 1, 1, 1
    for step in range(steps):
        what = random.choice(["emit", "emit", "cut", "end", "end", "leave", "restart"])
        if what == "emit":
            for _ in range(random.randint(1, 2)):
                count = random.randint(1, 8)
                ids = list(range(100 * following, 100 * following + count))
                if arrow:
                    pending.append(pa.array(ids), np.full(count, float(step)))
                else:
                    pending.ids += ids
                    pending.times += [float(step)] * count
                for message_id in ids:
                    model[following] = message_id, float(step)
                    following += 1
        elif what == "cut" and following > uncut:
            log[uncut] = [model[number][0] for number in range(uncut, following)]
            if arrow:
                pending.merge_blocks(uncut, pa.array(log[uncut]))
            else:
                pending.close_block()
            uncut = following
        elif what == "end":
            share = random.random()
            numbers = [n for n in range(1, uncut + 3) if random.random() < share]
            # What is in no cut can't end; and what nobody emitted is nobody's.
            numbers = [n for n in numbers if n < uncut or n >= following]
            expected = [(*model[n], n) for n in numbers if n in model]
            assert end(pending, numbers) == expected
            for number in numbers:
                model.pop(number, None)
        elif what == "leave" and log:
            firsts = [first for first in log if first > floor]
            if firsts:
                wanted, most = random.choice(firsts), random.randint(0, 6)
                few = sum(number < wanted for number in model) <= most
                assert pending.leave_log(wanted, most) is few
                floor = wanted if few else floor
        elif what == "restart" and uncut == following:
            old, low, bits = pending.saved()
            assert {n: py(i) for n, i in old.items()} == {n: i for n, (i, _) in model.items() if n < floor}
            assert low == min((n for n in model if n >= floor), default=following)
            pending = PendingMessages(low, bits, old, float(step), following)
            floor = max(floor, low)
            for first, ids in log.items():
                if first + len(ids) > low:
                    pending.add_logged(first, pa.array(ids) if arrow else ids, float(step))
            model = {number: (message_id, float(step)) for number, (message_id, _) in model.items()}
        assert len(pending) == len(model)
        assert [(n, py(i)) for n, i in pending.items()] == [(n, i) for n, (i, _) in model.items()]
        assert pending.following == following
    patch.undo()


class Id:
    """A message id whose end can be noticed."""

    def __init__(self, number: int) -> None:
        self.number = number


def test_a_block_with_few_pending_messages_keeps_only_these() -> None:
    pending = PendingMessages()
    alive: weakref.WeakSet[Id] = weakref.WeakSet()
    for number in range(1000):
        pending.ids.append(Id(number))
        pending.times.append(float(number))
        alive.add(pending.ids[-1])
    pending.close_block()
    size = len(pickle.dumps(pending))
    assert len(end(pending, [number for number in range(1, 1001) if number % 100])) == 990
    gc.collect()
    assert sorted(each.number for each in alive) == list(range(99, 1000, 100))
    assert len(pickle.dumps(pending)) < size / 8, "neither ids nor times of the others are kept"
    assert [message_id.number for message_id, _, _ in end(pending, [100, 1000])] == [99, 999]
    assert len(pending) == 8
