"""Where tasks live: the hash against what Spark computed, and how even it gets."""

from __future__ import annotations

from collections import Counter

import pytest

from storm_on_spark.api import Config
from storm_on_spark.api.config import effective_conf
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.plan.passes.placement import murmur3, partition_of, partitions_of

# SELECT hash(CAST(k AS INT)) of Spark 4.2.0.
HASHES = {
    0: 933211791,
    1: -559580957,
    2: 1765031574,
    3: -1823081949,
    7: 1079293707,
    42: 29417773,
    99: -554831819,
    1000: -14577491,
    65535: -1629199920,
    123456789: -598405280,
    2147483647: 133916647,
}

# spark_partition_id() of 0, 1, ..., 39 after repartition(7, k) of Spark 4.2.0.
PARTITIONS_OF_7 = [
    *(1, 2, 5, 4, 1, 5, 4, 2, 1, 3, 5, 6, 0, 6, 5, 4, 2, 3, 2, 3),
    *(1, 4, 1, 3, 0, 6, 6, 1, 3, 2, 3, 1, 6, 3, 3, 1, 0, 1, 1, 2),
]


@pytest.mark.parametrize(("key", "expected"), HASHES.items())
def test_the_hash_is_sparks(key, expected):
    assert murmur3(key) == expected


def test_the_partition_is_sparks():
    assert [partition_of(key, 7) for key in range(40)] == PARTITIONS_OF_7


def test_word_count_on_two_partitions(build):
    plan = compile_graph(build({"sentences": [], "split": ["sentences"], "count!": ["fields split"]}, {"count": 2}))
    placed = place(plan, 2)
    count, acker = placed.components["count"].tasks, placed.acker_tasks[0]
    assert [placed.placement[task] for task in count] == [0, 1]
    assert placed.placement[acker] == 0
    assert placed.partitions == 2
    # 0 hashes to 1, so 2 is the smallest that hashes to 0.
    assert [placed.keys[task] for task in count] == [2, 0]


def test_the_acker_goes_where_there_is_least_to_do(build):
    drawing = {"s": [], "a!": ["fields s"], "b!": ["fields a"]}
    placed = place(compile_graph(build(drawing, {"a": 2, "b": 3})), 4)
    load = Counter(placed.placement[task] for name in "ab" for task in placed.components[name].tasks)
    assert [load[partition] for partition in range(4)] == [2, 1, 1, 1]
    assert placed.placement[placed.acker_tasks[0]] == 1


def test_one_partition_takes_all(build):
    placed = place(compile_graph(build({"s": [], "a!": ["fields s"]}, {"a": 5})), 1)
    assert set(placed.placement.values()) == {0}
    # One operator executes them all, so all rows have one key.
    assert len(placed.operators) == 1
    assert placed.keys == dict.fromkeys(range(1, 8), 0)


@pytest.mark.parametrize(
    ("conf", "parallelism", "partitions"),
    [
        ({}, 4, 1),  # in real time
        ({Config.TOPOLOGY_SPOUTS_PLACEMENT: "executors"}, 4, 4),
        ({Config.TOPOLOGY_SPOUTS_PLACEMENT: "executors"}, 8, 5),  # no stage has more tasks
        ({Config.TOPOLOGY_SPOUTS_PLACEMENT: "executors", Config.TOPOLOGY_ACKER_EXECUTORS: 7}, 8, 7),
        ({Config.TOPOLOGY_PARTITIONS: 9}, 4, 9),
        ({Config.TOPOLOGY_PROFILE: "latency"}, 4, 1),
        ({Config.TOPOLOGY_PROFILE: "latency", Config.TOPOLOGY_PARTITIONS: 3}, 4, 3),
        ({Config.TOPOLOGY_PROFILE: "throughput"}, 4, 4),
    ],
)
def test_the_number_of_partitions_of_a_first_start(build, conf, parallelism, partitions):
    graph = compile_graph(build({"s": [], "a!": ["fields s"]}, {"a": 5}), effective_conf(conf))
    assert partitions_of(graph, parallelism) == partitions


def test_a_session_without_real_time_gets_a_partition_for_each_core(build):
    graph = compile_graph(build({"s": [], "a!": ["fields s"]}, {"a": 5}), effective_conf({}))
    assert [partitions_of(graph, 4, session) for session in ("", "executors are elsewhere")] == [1, 4]


def test_stateless_bolts_do_not_move_stateful_ones(build):
    drawing = {"s": [], "b!": ["fields s"], "c!": ["fields b"]}
    tasks = {"b": 2, "c": 3}
    before = place(compile_graph(build(drawing, tasks)), 4)
    more = {**drawing, "y": ["fields s"], "z": ["b"]}
    after = place(compile_graph(build(more, {**tasks, "y": 3, "z": 5})), 4)
    for name in "bc":
        for old, new in zip(before.components[name].tasks, after.components[name].tasks, strict=True):
            assert before.keys[old] == after.keys[new]
    assert before.keys[before.acker_tasks[0]] == after.keys[after.acker_tasks[0]]


@pytest.mark.parametrize("partitions", [0, -1])
def test_there_must_be_a_partition(build, partitions):
    with pytest.raises(ValueError, match=f"at least 1, not {partitions}"):
        place(compile_graph(build({"s": []})), partitions)


def test_without_an_acker(build):
    plan = compile_graph(build({"s": [], "a!": ["fields s"]}), {Config.TOPOLOGY_ACKER_EXECUTORS: 0})
    assert sorted(place(plan, 2).placement) == [1, 2]
