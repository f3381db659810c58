"""An oracle that never objects proves nothing: each is shown a run with exactly what it is there to find."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from lab.load import ledger, sinks
from lab.load.oracles import Evidence, check
from lab.load.topology import KEYS, Load, keys_of

LOAD = Load(messages=200, seconds=1)


def records(*rows: tuple[int, ...]) -> ledger.Records:
    return np.array([(at, *row, *[-1] * (3 - len(row))) for at, row in enumerate(rows)], ledger.DTYPE)


def flawless() -> Evidence:
    """A run without a fault: poison fails once, everything else is acked at once."""
    poison = [number for number in range(LOAD.messages) if LOAD.is_poison(number)]
    emits = [(number, 0) for number in range(LOAD.messages)] + [(number, 1) for number in poison]
    pairs = [(number, 0, number + 1) for number in range(0, LOAD.messages, 2)]
    counts, sums = Counter(), Counter()
    for number, attempt in emits:
        for key in keys_of(number):
            if attempt or key >= KEYS or number not in poison:
                counts[key] += 1
                sums[key] += number
    spouts = [{"acked": LOAD.messages, "failed": len(poison), "open": [], "strange": []}]
    spouts.append({"acked": 0, "failed": 0, "open": [], "strange": []})
    state = {
        "counts": [{str(key): value for key, value in counts.items() if key % 2 == task} for task in (0, 1)],
        "sums": [{str(key): value for key, value in sums.items() if key % 2 == task} for task in (0, 1)],
        "joined": LOAD.messages // 2,
        "alone": len(poison),
        "held": 0,
        "pending": 0,
    }
    return Evidence(
        emits=records(*emits),
        acks=records(*(emit for emit in emits if emit[1] or emit[0] not in poison)),
        fails=records(*((number, 0) for number in poison)),
        sink=records(*pairs, *((number, 1, -1) for number in poison)),
        spouts=spouts,
        state=state,
    )


def problems(evidence: Evidence, *, host_dies: bool = False, strict_fails: bool = True) -> list[str]:
    return check(LOAD, evidence, host_dies=host_dies, strict_fails=strict_fails)[1]


def test_a_flawless_run_is_found_flawless():
    figures, found = check(LOAD, flawless(), host_dies=False, strict_fails=True)

    assert found == []
    assert (figures.messages, figures.lost, figures.state_errors, figures.duplicates) == (LOAD.messages, 0, 0, 0)
    assert figures.replayed == sum(map(LOAD.is_poison, range(LOAD.messages)))


def without(rows: ledger.Records, number: int) -> ledger.Records:
    return rows[(rows["number"] != number) & (rows["partner"] != number)]


def again(rows: ledger.Records, number: int) -> ledger.Records:
    return np.concatenate([rows, rows[rows["number"] == number]])


def of_spout(evidence: Evidence, **changed: object) -> Evidence:
    return replace(evidence, spouts=[{**evidence.spouts[0], **changed}, evidence.spouts[1]])


def of_state(evidence: Evidence, **changed: object) -> Evidence:
    return replace(evidence, state={**evidence.state, **changed})


@pytest.mark.parametrize(
    ("break_it", "complaint"),
    [
        (lambda e: replace(e, sink=without(e.sink, 8)), "2 messages never reached the sink: 8, 9"),
        (lambda e: replace(e, acks=without(e.acks, 8)), "1 messages were never acked: 8"),
        (
            lambda e: replace(e, fails=np.concatenate([e.fails, records((8, 0))])),
            "1 roots were both acked and failed: message 8 attempt 0",
        ),
        (lambda e: replace(e, acks=without(e.acks, 8)), "1 roots had no outcome: message 8 attempt 0"),
        (
            lambda e: replace(e, acks=records(*map(tuple, e.acks[["number", "attempt"]].tolist()), (8, 5))),
            "never emitted",
        ),
        (
            lambda e: replace(
                e, emits=records(*e.emits[["number", "attempt"]].tolist(), (8, 1)), acks=again_as(e.acks)
            ),
            "1 messages were acked under several roots: 8",
        ),
        (lambda e: replace(e, fails=e.fails[1:]), "1 poisonous roots were not failed"),
        (lambda e: replace(e, acks=again(e.acks, 8)), "1 outcomes were told twice though no spout host died"),
        (lambda e: replace(e, spouts=e.spouts[:1]), "spout tasks instead of 2 were closed"),
        (lambda e: of_spout(e, open=[8]), "1 messages without an outcome in the spouts' state: 8"),
        (lambda e: of_spout(e, strange=[["ack", 8, 0]]), "outcomes of roots not under way"),
        (lambda e: of_spout(e, acked=LOAD.messages - 1), "acked roots counted by the spouts, not 200"),
        (
            lambda e: of_state(e, counts=[{**e.state["counts"][0], "8": 7}, e.state["counts"][1]]),
            "counts by key are off",
        ),
        (lambda e: of_state(e, sums=[{**e.state["sums"][0], "8": 7}, e.state["sums"][1]]), "sums by key are off"),
        (lambda e: of_state(e, counts=[*e.state["counts"], {"8": 1}]), "in the state of two tasks"),
        (lambda e: of_state(e, joined=99), "99 tuples joined in the state, not 100"),
        (lambda e: of_state(e, held=1), "1 tuples held in the state, not 0"),
        (lambda e: of_state(e, pending=3), "3 tuples pending in the state, not 0"),
        (lambda e: replace(e, state=None), "did not complete"),
    ],
)
def test_each_flaw_is_found(break_it: Callable[[Evidence], Evidence], complaint: str):
    found = problems(break_it(flawless()))

    assert any(complaint in problem for problem in found), found


def again_as(acks: ledger.Records) -> ledger.Records:
    return records(*acks[["number", "attempt"]].tolist(), (8, 1))


def test_a_second_call_of_ack_is_no_flaw_where_a_spout_host_died():
    evidence = flawless()
    figures, found = check(LOAD, replace(evidence, acks=again(evidence.acks, 8)), host_dies=True, strict_fails=True)

    assert (found, figures.told_again) == ([], 1)


def test_a_fail_without_a_reason_is_a_flaw_where_nothing_but_poison_may_fail():
    evidence = flawless()
    late = replace(
        evidence,
        emits=records(*evidence.emits[["number", "attempt"]].tolist(), (8, 1)),
        acks=records(*without(evidence.acks, 8)[["number", "attempt"]].tolist(), (8, 1)),
        fails=records(*evidence.fails[["number", "attempt"]].tolist(), (8, 0)),
    )

    assert "1 roots failed without a reason: message 8 attempt 0" in problems(late)
    assert not [problem for problem in problems(late, strict_fails=False) if "without a reason" in problem]


def test_duplicates_at_the_sink_are_counted():
    evidence = flawless()
    figures, found = check(LOAD, replace(evidence, sink=again(evidence.sink, 8)), host_dies=False, strict_fails=True)

    assert (found, figures.duplicates) == ([], 1)


def test_the_oracle_of_tables_finds_what_is_lost_and_what_is_there_twice(tmp_path: Path):
    held = {"delta": [1, 2, 3], "jdbc": [1, 2], "files": [1, 2, 3, 3], "stream": [1, 2, 3, 4]}
    rows = {name: [{"number": n, "attempt": 0, "partner": -1} for n in numbers] for name, numbers in held.items()}
    write_deltalake(tmp_path / "delta", pa.Table.from_pylist(rows["delta"]))
    with contextlib.closing(sqlite3.connect(tmp_path / "rows.db")) as connection:
        connection.execute("CREATE TABLE rows (number INTEGER, attempt INTEGER, partner INTEGER)")
        connection.executemany("INSERT INTO rows VALUES (:number, :attempt, :partner)", rows["jdbc"])
        connection.commit()
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "0.json").write_text("\n".join(map(json.dumps, rows["files"])))
    (tmp_path / "stream").mkdir()
    pq.write_table(pa.Table.from_pylist(rows["stream"]), tmp_path / "stream" / "0.parquet")
    # The load's own sink may have seen a row again: it promises nothing else.
    assert sinks.check(tmp_path, records((1, 0), (2, 0), (3, 0), (3, 0))) == [
        "jdbc: 1 rows lost, such as (3, 0, -1)",
        "files: 1 rows there without a reason, or twice, such as (3, 0, -1)",
        "stream: 1 rows there without a reason, or twice, such as (4, 0, -1)",
    ]
