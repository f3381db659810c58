"""The counterparts of storm-starter's DRPC examples, against plain Python, in one process and with a real server."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from storm_on_spark import BaseBasicBolt, FailedException, Fields, LocalDRPC, Topology
from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.coordination import BaseBatchBolt
from storm_on_spark.drpc import DRPCExceptionType, DRPCExecutionException, LinearDRPCTopologyBuilder
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology


@pytest.fixture
def drpc() -> Iterator[LocalDRPC]:
    with LocalDRPC({"drpc.request.timeout.secs": 60}) as drpc:
        yield drpc


@contextmanager
def running(topology: Topology, **conf) -> Iterator[InProcessTopology]:
    ended = threading.Event()
    run = InProcessTopology(compile_graph(topology, effective_conf(conf)), "test")
    thread = threading.Thread(target=lambda: run.run(lambda: not ended.is_set()), daemon=True)
    thread.start()
    try:
        yield run
    finally:
        ended.set()
        thread.join(30)
        assert not thread.is_alive()
        assert run.failure is None


def test_words_are_exclaimed(drpc: LocalDRPC) -> None:
    import basic_drpc

    with running(basic_drpc.builder().create_local_topology(drpc)), ThreadPoolExecutor(4) as callers:
        words = ["hello", "goodbye", "", "ä\n€"] * 5
        found = list(callers.map(lambda word: drpc.execute("exclamation", word), words))
    assert found == [f"{word}!" for word in words]


def test_a_topology_wired_by_hand_answers(drpc: LocalDRPC) -> None:
    import manual_drpc

    with running(manual_drpc.topology(drpc)) as run:
        assert [drpc.execute("exclamation", word) for word in ("aaa", "bbb")] == ["aaa!!!", "bbb!!!"]
    info = run.info()
    assert (info.acked, info.failed, info.pending) == (2, 0, 0)


def test_reach_is_the_number_of_different_followers(drpc: LocalDRPC) -> None:
    import reach_topology as reach

    expected = {
        page: {follower for tweeter in tweeters for follower in reach.FOLLOWERS.get(tweeter, ())}
        for page, tweeters in {**reach.TWEETERS, "notaurl.com": []}.items()
    }
    with running(reach.builder().create_local_topology(drpc)), ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda page: drpc.execute("reach", page), list(expected) * 3))
    assert found == [str(len(followers)) for followers in expected.values()] * 3


class Picky(BaseBasicBolt):
    def execute(self, tup, collector):
        if tup[1] == "bad":
            raise FailedException("no")
        if tup[1] != "lost":
            collector.emit([tup[0], tup[1]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "result"))


class Ends(BaseBatchBolt):
    def prepare(self, conf, context, collector, batch_id):
        self.collector, self.id, self.seen = collector, batch_id, []

    def execute(self, tup):
        self.seen.append(tup[1])

    def finish_batch(self):
        if self.seen == ["late"]:
            raise FailedException("no")
        self.collector.emit([self.id, len(self.seen)])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "result"))


def test_a_request_that_fails_anywhere_fails_for_its_caller_and_no_other(drpc: LocalDRPC) -> None:
    builder = LinearDRPCTopologyBuilder("f")
    builder.add_bolt(Picky(), 2)
    builder.add_bolt(Ends(), 2).fields_grouping("id")
    with running(builder.create_local_topology(drpc)):
        for bad in ("bad", "late"):
            with pytest.raises(DRPCExecutionException, match="the request failed") as failed:
                drpc.execute("f", bad)
            assert failed.value.type is DRPCExceptionType.FAILED_REQUEST
        # A request without tuples is finished too.
        assert [drpc.execute("f", word) for word in ("good", "lost")] == ["1", "0"]


def test_chains_that_cannot_answer_are_refused(drpc: LocalDRPC) -> None:
    class Three(Picky):
        def declare_output_fields(self, declarer):
            declarer.declare(Fields("id", "a", "b"))

    with pytest.raises(InvalidTopologyError, match="has no bolts: call add_bolt"):
        LinearDRPCTopologyBuilder("f").create_remote_topology()
    builder = LinearDRPCTopologyBuilder("f")
    builder.add_bolt(Three())
    with pytest.raises(InvalidTopologyError, match='bolt "bolt0", the last one, must declare one stream of two fields'):
        builder.create_local_topology(drpc)
    builder.add_bolt(Picky())
    with pytest.raises(InvalidTopologyError, match='bolt "bolt1" has no grouping'):
        builder.create_local_topology(drpc)
    with pytest.raises(TypeError, match="a LocalDRPC belongs to its process"):
        pickle.dumps(drpc)
