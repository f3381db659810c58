"""A micro-batch with rows that Spark has read itself: it was planned before real time, and no live process knows it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.live.conduct import BEGINNING, NOBODY, micro_batch
from storm_on_spark.runtime.live.execution.rounds import ROUNDS, Round, RoundLog, read_rounds

ROWS = [(0, chunk.encode_position(("lines", 0), source=3))]
BEHIND = Round(7, Offset({3: 90}, 50), saved=False)
BOUNDS = Offset({3: 10}, 5), Offset({3: 40}, 20)


class Saved(dict[tuple[int, str, int], bytes]):
    """The state of a task."""

    def get(self, name: Any, index: Any = 0) -> Any:
        return super().get((NOBODY, name, index))

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        self[NOBODY, name, index] = value


class Nobody:
    """A live process with another state: it must be neither asked nor given this one."""

    def fetch(self, *given: Any) -> Any:
        raise AssertionError("it knows nothing of Spark's rows")

    adopt = start = fetch

    def listens(self) -> bool:
        return True


@pytest.mark.parametrize("bounds", [None, BOUNDS])
@pytest.mark.parametrize("before", [BEGINNING, b"b" * 16])
def test_it_is_executed_from_the_log_and_the_next_one_has_the_rounds_that_spouts_have_heard_of(
    tmp_path: Path, bounds: Any, before: bytes
) -> None:
    rounds = RoundLog(tmp_path / ROUNDS, sync=False)
    rounds.follow([before])
    rounds.append(BEHIND)
    rounds.close()
    wiring = SimpleNamespace(system_key=0, settings=lambda kind: SimpleNamespace(durability="process"))
    worker: Any = SimpleNamespace(wiring=wiring, folder=tmp_path, spec=SimpleNamespace(owner=0))
    state = Saved()
    if before != BEGINNING:
        state.put("live", before)
    elif bounds is not None:
        bounds = Offset(), bounds[1]
    client: Any = Nobody()
    run = "start", b""
    produced = micro_batch(client, worker, run, lambda task: state, dict, bounds, lambda: ROWS, only_log=False)
    assert list(produced) == ROWS
    after = state.get("live")
    assert after not in (None, before)
    assert read_rounds(tmp_path / ROUNDS, after) == [BEHIND]
