"""`DRPCSpout`, `ReturnResults` and `JoinResult`: against real servers, and one that speaks Storm's interface only."""

from __future__ import annotations

import io
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import eventually

import storm_on_spark.drpc
from storm_on_spark import LocalDRPC
from storm_on_spark.api.errors import ConfigError, InvalidTopologyError
from storm_on_spark.cluster.drpc.server import DRPCServer, Ports
from storm_on_spark.drpc import DRPCExceptionType, DRPCExecutionException, DRPCSpout, JoinResult, ReturnResults
from storm_on_spark.drpc.connection import Address
from storm_on_spark.testing import BoltTester, SpoutTester, make_tuple, run_bolt


@pytest.fixture
def drpc() -> Iterator[LocalDRPC]:
    with LocalDRPC({"drpc.request.timeout.secs": 30}) as drpc:
        yield drpc


class Asking(threading.Thread):
    def __init__(self, ask: Callable[[], str]) -> None:
        super().__init__(daemon=True)
        self.ask, self.result, self.error = ask, None, None
        self.start()

    def run(self) -> None:
        try:
            self.result = self.ask()
        except DRPCExecutionException as error:
            self.error = error

    def ended(self) -> Asking:
        self.join(20)
        assert not self.is_alive()
        return self


def emitted(tester: SpoutTester, count: int) -> list[Any]:
    deadline = time.monotonic() + 20
    while len(tester.collector.emitted) < count:
        assert time.monotonic() < deadline
        tester.spout.next_tuple()
        time.sleep(0.002)
    return tester.collector.emitted


def test_requests_are_emitted_and_results_returned(drpc: LocalDRPC) -> None:
    tester = SpoutTester(DRPCSpout("f", drpc))
    asking = Asking(lambda: drpc.execute("f", "x"))
    (request,) = emitted(tester, 1)
    arguments, info = request.values
    assert arguments == "x"
    known = json.loads(info)
    assert (known["host"], known["port"]) == ("127.0.0.1", drpc.invocations.port)
    for unsent in ("half of a pair: \udcff", "x" * (1 << 20)):
        done = run_bolt(ReturnResults(), [make_tuple([unsent, info], ["result", "return-info"])])
        assert (len(done.failed), len(done.acked)) == (1, 0)
    done = run_bolt(ReturnResults(), [make_tuple(["y", info], ["result", "return-info"])])
    assert len(done.acked) == 1
    assert asking.ended().result == "y"
    tester.close()


def test_a_message_that_fails_fails_its_request(drpc: LocalDRPC) -> None:
    tester = SpoutTester(DRPCSpout("f", drpc))
    asking = Asking(lambda: drpc.execute("f", "x"))
    (request,) = emitted(tester, 1)
    tester.spout.fail(request.message_id)
    assert asking.ended().error.type is DRPCExceptionType.FAILED_REQUEST
    tester.close()


class Watching:
    """What wakes a spout, as a list of the descriptors that are watched."""

    def __init__(self) -> None:
        self.watched: list[int] = []

    def __call__(self) -> None:
        pass

    def watch(self, descriptor: int) -> None:
        self.watched.append(descriptor)

    def unwatch(self, descriptor: int) -> None:
        self.watched.remove(descriptor)


def watched(tester: SpoutTester) -> Watching:
    watching = Watching()
    tester.spout.woken_by(watching)

    def begun() -> bool:
        tester.spout.next_tuple()
        return bool(watching.watched)

    eventually(begun)
    return watching


def ready(watching: Watching) -> bool:
    return bool(select.select(watching.watched, [], [], 20)[0])


def test_a_request_makes_the_descriptor_ready_that_the_spout_has_watched(drpc: LocalDRPC) -> None:
    tester = SpoutTester(DRPCSpout("f", drpc))
    watching = watched(tester)
    asking = Asking(lambda: drpc.execute("f", "x"))
    assert ready(watching)
    tester.spout.next_tuple()
    ((arguments, info),) = [each.values for each in tester.collector.emitted]
    run_bolt(ReturnResults(), [make_tuple([arguments + "!", info], ["result", "return-info"])])
    assert asking.ended().result == "x!"
    tester.close()
    assert watching.watched == []


def test_what_was_fetched_and_not_emitted_fails_when_the_spout_ends(drpc: LocalDRPC) -> None:
    tester = SpoutTester(DRPCSpout("f", drpc))
    watching = watched(tester)
    asking = Asking(lambda: drpc.execute("f", "x"))
    assert ready(watching)
    tester.close()
    assert asking.ended().error.type is DRPCExceptionType.FAILED_REQUEST


def test_a_server_that_goes_and_comes_again_is_asked_again() -> None:
    with DRPCServer({}, Ports(0, 0, 0)) as server:
        address = server.invocations
        tester = SpoutTester(DRPCSpout("f", server))
        watching = watched(tester)
    assert ready(watching)

    def left() -> bool:
        tester.spout.next_tuple()
        return not watching.watched

    eventually(left)
    with DRPCServer({}, Ports(0, address.port, 0)) as server:
        asking = Asking(lambda: server.execute("f", "x"))
        assert emitted(tester, 1)[0].values[0] == "x"
        tester.spout.fail(tester.collector.emitted[0].message_id)
        assert asking.ended().error.type is DRPCExceptionType.FAILED_REQUEST
        tester.close()


def test_an_inactive_spout_fetches_nothing() -> None:
    with DRPCServer({}, Ports(0, 0, 0)) as server:
        tester = SpoutTester(DRPCSpout("f", server))
        watched(tester)
        eventually(lambda: server.broker.fetching == 1)
        tester.spout.deactivate()
        eventually(lambda: server.broker.fetching == 0)
        asking = Asking(lambda: server.execute("f", "x"))
        other = SpoutTester(DRPCSpout("f", server))
        assert emitted(other, 1)[0].values[0] == "x"
        assert tester.collector.emitted == []
        other.close()
    assert asking.ended().error.type is DRPCExceptionType.SERVER_SHUTDOWN
    tester.close()


def test_a_result_that_cannot_be_returned_fails_its_tuple(drpc: LocalDRPC) -> None:
    gone = json.dumps({"id": "1", "host": "127.0.0.1", "port": 1})
    bad = ["no JSON", "[]", "{}", json.dumps({"id": "1"}), gone]
    done = run_bolt(ReturnResults(), [make_tuple(["y", info], ["result", "return-info"]) for info in bad])
    assert (len(done.failed), len(done.acked)) == (len(bad), 0)


def result(key: str, value: object) -> Any:
    return make_tuple([key, value], ["id", "result"], component="bolt0")


def returned(key: str) -> Any:
    return make_tuple([key, "info " + key], ["request", "return"], component="prepare-request", stream="ret")


def test_halves_meet_in_any_order_over_a_restart_and_expire() -> None:
    tester = BoltTester(JoinResult("prepare-request"), [result("", ""), returned("")])
    tester.execute(result("a", 1), returned("b"))
    tester.restart()
    tester.execute(returned("a"), result("b", None))
    assert tester.collector.values() == [("1", "info a"), ("None", "info b")]
    tester.execute(result("c", 1), returned("d"))
    tester.advance(seconds=46)
    assert len(tester.collector.failed) == 2
    tester.execute(returned("c"))
    assert len(tester.collector.values()) == 2


def test_what_the_configuration_lacks_is_told() -> None:
    with pytest.raises(ConfigError, match=r"drpc\.servers names no DRPC server"):
        DRPCSpout("f").open({}, None, None)
    with pytest.raises(InvalidTopologyError, match="takes the name of a function, not"):
        DRPCSpout("")


class StormsServer:
    """What Storm's server answers to topologies, by thriftpy2's own server: no `fetchRequests`."""

    def __init__(self) -> None:
        import thriftpy2
        from thriftpy2.protocol.binary import TBinaryProtocolFactory
        from thriftpy2.rpc import make_server
        from thriftpy2.transport.framed import TFramedTransportFactory

        text = Path(storm_on_spark.drpc.__file__).with_name("drpc.thrift").read_text()
        text = text[: text.index("  // Not Storm's")] + "}\n"
        self._types = thriftpy2.load_fp(io.StringIO(text), "storms_drpc_thrift")
        self.waiting = ["first", "second"]
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self.server = make_server(
            self._types.DistributedRPCInvocations,
            self,
            "127.0.0.1",
            self.port,
            client_timeout=None,
            proto_factory=TBinaryProtocolFactory(),
            trans_factory=TFramedTransportFactory(),
        )
        threading.Thread(target=self.server.serve, daemon=True).start()

    def fetchRequest(self, functionName: str) -> Any:
        if not self.waiting:
            return self._types.DRPCRequest("", "")
        text = self.waiting.pop(0)
        return self._types.DRPCRequest(text, f"id of {text}")


def test_a_server_of_storms_own_is_asked_again_and_again() -> None:
    server = StormsServer()

    class Server:
        invocations = Address("127.0.0.1", server.port)

    tester = SpoutTester(DRPCSpout("f", Server()))
    assert [each.values[0] for each in emitted(tester, 2)] == ["first", "second"]
    tester.close()
    server.server.close()
