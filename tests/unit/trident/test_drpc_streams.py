"""Questions to a topology: streams of requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from trident_run import CONF

from storm_on_spark import FailedException, InvalidTopologyError
from storm_on_spark.api.config.config import effective_conf
from storm_on_spark.cluster.drpc.local import LocalDRPC
from storm_on_spark.drpc.errors import DRPCExecutionException
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process.topology import InProcessTopology
from storm_on_spark.trident import Count, FilterNull, FixedBatchSpout, Sum, TridentTopology
from storm_on_spark.trident.state import MapGet, MemoryMapState


def asked(topology: TridentTopology, drpc: LocalDRPC, function: str, questions: Sequence[str]) -> list[Any]:
    """Returns the answers, or exceptions, of a topology that runs in this process."""
    answers: list[Any] = []
    done = threading.Event()

    def ask() -> None:
        try:
            for question in questions:
                try:
                    answers.append(json.loads(drpc.execute(function, question)))
                except DRPCExecutionException as error:
                    answers.append(error)
        finally:
            done.set()

    run = InProcessTopology(compile_graph(topology.build(), effective_conf(CONF)), "asked")
    caller = threading.Thread(target=ask)
    caller.start()
    try:
        run.run(lambda: not done.is_set())
    finally:
        caller.join(60)
    assert run.failure is None
    return answers


def test_a_query_of_a_state_answers_requests() -> None:
    topology = TridentTopology()
    lines = topology.new_stream("lines", FixedBatchSpout("line", 3, [["to be or not"], ["to be"]]))
    words = lines.flat_map(lambda tup: tup["line"].split(), "word")
    counts = words.group_by("word").persistent_aggregate(MemoryMapState.Factory(), Count(), "count")
    counts.parallelism_hint(2)
    with LocalDRPC({"drpc.request.timeout.secs": 60}) as drpc:
        (
            topology.new_drpc_stream("words", drpc)
            .flat_map(lambda tup: tup["args"].split(), "word")
            .group_by("word")
            .state_query(counts, "word", MapGet(), "count")
            .each("count", FilterNull())
            .aggregate("count", Sum(), "sum")
        )
        # The lines may be counted while the first questions are asked.
        found = asked(topology, drpc, "words", [*["to"] * 20, "to be", "not nothing", "nope"])
    assert found[-3:] == [[[4]], [[1]], [[0]]]


def test_all_tuples_of_the_last_stream_are_the_answer() -> None:
    topology = TridentTopology()
    with LocalDRPC({"drpc.request.timeout.secs": 60}) as drpc:
        topology.new_drpc_stream("split", drpc).flat_map(
            lambda tup: [(word, len(word)) for word in tup["args"].split()], ["word", "length"]
        )
        assert asked(topology, drpc, "split", ["to be", "", "storm"]) == [[["to", 2], ["be", 2]], [], [["storm", 5]]]


def test_a_request_that_fails_fails_for_its_caller_and_others_go_on() -> None:
    def refusing(tup: Any) -> str:
        if tup["args"] == "bad":
            raise FailedException("not this one")
        return str(tup["args"]).upper()

    topology = TridentTopology()
    with LocalDRPC({"drpc.request.timeout.secs": 60}) as drpc:
        topology.new_drpc_stream("upper", drpc).map(refusing, "upper")
        first, bad, last = asked(topology, drpc, "upper", ["a", "bad", "b"])
    assert (first, last) == ([["A"]], [["B"]])
    assert isinstance(bad, DRPCExecutionException)


def test_requests_are_not_joined_with_batches_of_other_spouts() -> None:
    topology = TridentTopology()
    with LocalDRPC() as drpc:
        requests = topology.new_drpc_stream("words", drpc)
        topology.merge(requests, topology.new_stream("lines", FixedBatchSpout("line", 3, [["to be"]])))
        with pytest.raises(InvalidTopologyError, match="let them query a state instead"):
            topology.build()
