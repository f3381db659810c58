"""Every grouping through Spark, against what plain Python expects of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from topologies import grouped
from topologies.notes import read_notes
from topologies.parts import Received

from storm_on_spark.spark.state import read_bolt_state, read_pending_roots


def received(folder: Path) -> list[Received]:
    return [Received(*record) for record in read_notes(folder, "received")]


def test_even_groupings_share_100_000_tuples_to_within_one_percent(spark_session: SparkSession, complete, tmp_path):
    info = complete(grouped.even())

    assert (info.acked, info.failed, info.pending) == (grouped.COUNT, 0, 0)
    for bolt in ("shuffle", "none", "local", "relayed"):
        states = read_bolt_state(spark_session, tmp_path / "checkpoint", bolt).values()
        shares = [state["count"] for state in states]
        assert sum(shares) == grouped.COUNT
        assert sum(state["sum"] for state in states) == sum(range(grouped.COUNT))
        assert len(shares) == 2
        assert min(shares) >= 0.49 * grouped.COUNT, f"{bolt}: {shares}"
    assert read_pending_roots(spark_session, tmp_path / "checkpoint") == []


def test_fields_grouping_sends_equal_keys_to_one_task_whoever_emits_them(complete, tmp_path):
    complete(grouped.keyed())

    tasks: dict[tuple[str, object], set[int]] = defaultdict(set)
    sources: dict[tuple[str, object], set[str]] = defaultdict(set)
    for tup in received(tmp_path):
        key = (tup.component, tup.values if tup.component == "two" else tup.values[0])
        tasks[key].add(tup.task)
        sources[key].add(tup.source_component)
    expected = {("one", key) for key in grouped.KEYS} | {("two", (key, n % 7)) for n, key in enumerate(grouped.KEYS)}
    assert tasks.keys() == expected
    assert [key for key, used in tasks.items() if len(used) != 1] == []
    assert all(names == {"keys", "relay"} for names in sources.values())
    for bolt in ("one", "two"):
        used = {task for (component, _), found in tasks.items() if component == bolt for task in found}
        assert len(used) == 4, "some task of four got nothing"


@pytest.mark.representative
def test_choosing_groupings_deliver_where_their_rule_says(complete, tmp_path):
    info = complete(grouped.routed())

    numbers = range(grouped.ROUTED)
    tasks: dict[str, dict[object, list[int]]] = defaultdict(lambda: defaultdict(list))
    for tup in received(tmp_path):
        tasks[tup.component][tup.values[0]].append(tup.task)
    emitted: dict[str, list[tuple[int, list[int]]]] = defaultdict(list)
    for stream, value, chosen in read_notes(tmp_path, "emitted"):
        emitted[stream].append((value, chosen))
    ids = {name: sorted({t for found in by.values() for t in found}) for name, by in tasks.items()}

    assert len(ids["all"]) == 3
    assert all(sorted(tasks["all"][n]) == ids["all"] for n in numbers)

    assert ids["global"] == [min(ids["global"])]
    assert sum(map(len, tasks["global"].values())) == grouped.ROUTED

    assert {n: sorted(tasks["custom"][n]) for n in numbers} == {
        n: sorted(grouped.even_twice(n, ids["custom"])) for n in numbers
    }

    assert Counter(key for key, found in tasks["partial"].items() for _ in found) == Counter(
        grouped.skewed(n) for n in numbers
    )
    assert all(len(set(found)) <= 2 for found in tasks["partial"].values())
    hot = Counter(tasks["partial"][0])
    assert len(hot) == 2, "the key that three of four tuples have is shared by two tasks"
    assert max(hot.values()) < 0.6 * sum(hot.values())

    assert {n: tasks["direct"][n] for n in numbers} == {n: [ids["direct"][n % 3]] for n in numbers}

    shares = Counter(task for found in tasks["shuffle"].values() for task in found)
    assert max(shares.values()) - min(shares.values()) <= 3 * 10
    assert (info.acked, info.failed) == (grouped.ROUTED, 0)

    # What emit returned is where the tuple went.
    for stream in ("all", "global", "custom", "shuffle"):
        assert {n: sorted(chosen) for n, chosen in emitted[stream]} == {n: sorted(tasks[stream][n]) for n in numbers}
    assert Counter(t for _, chosen in emitted["partial"] for t in chosen) == Counter(
        t for found in tasks["partial"].values() for t in found
    )
    assert all(chosen == [] for _, chosen in emitted["unheard"])


def test_wrong_direct_emits_say_what_is_allowed(complete, tmp_path):
    complete(grouped.routed())

    mistakes = dict(read_notes(tmp_path, "mistakes"))
    assert mistakes.keys() == {"stranger", "plain emit", "plain stream"}
    assert "does not subscribe to it; subscribed tasks: " in mistakes["stranger"]
    assert "is a direct stream; use emit_direct" in mistakes["plain emit"]
    assert "is not a direct stream; use emit" in mistakes["plain stream"]
