"""`make pacemaker-bench`: how a maximum is found, and what a generator says of a server that dies."""

from __future__ import annotations

import contextlib
import os
import time

import msgspec
from lengths import PATIENCE_SECS

from lab.benchmarks.pacemaker.__main__ import CONTENDERS, SIZES, grow, wanted
from lab.benchmarks.pacemaker.contenders import Running
from lab.benchmarks.pacemaker.load import Load, Orders
from lab.benchmarks.pacemaker.measure import Measured, measure
from lab.benchmarks.pacemaker.report import maxima, tables
from storm_on_spark.cluster.pacemaker.server import PacemakerServer


def measured(supervisors: int, most: int, generator_cpu: float = 0.5) -> Measured:
    borne = supervisors <= most
    return Measured(
        contender="ours",
        supervisors=supervisors,
        size=2000,
        due_per_sec=1.0,
        written_per_sec=1.0,
        megabit_per_sec=1.0,
        cpu=0.5,
        micros_per_write=1.0,
        resident_mib=100.0,
        values_mib=50.0,
        p50=0.001,
        p99=0.002,
        read_secs=1.0,
        lag_p99=0.001,
        sustained=borne,
        generator_cpu=generator_cpu,
        why="" if borne else "90% of the heartbeats answered",
    )


def test_a_maximum_is_looked_for_between_the_last_that_was_borne_and_the_first_that_was_not() -> None:
    found = grow((100, 200, 400, 800), lambda supervisors: measured(supervisors, 320))
    assert [(each.supervisors, each.sustained) for each in found] == [
        (100, True),
        (200, True),
        (300, True),
        (400, False),
    ]
    assert maxima(found) == [("ours", 2000, 300, "400: 90% of the heartbeats answered")]
    assert "| ours | 2,000 | 300 | 400: 90% of the heartbeats answered |" in tables(found)


def test_what_the_generator_cant_do_is_not_held_against_a_server() -> None:
    found = grow((100, 200), lambda supervisors: measured(supervisors, 100, generator_cpu=0.99))
    assert [each.supervisors for each in found] == [100, 200]
    [(_, _, most, more)] = maxima(found)
    assert (most, more) == (100, "200: the generator can do no more (90% of the heartbeats answered)")


def test_every_contender_bears_every_size_unless_earlier_results_are_added_to() -> None:
    assert wanted(None, None) == [(size, name) for size in SIZES for name in CONTENDERS]
    assert wanted(None, None, earlier=True) == []
    assert wanted([20_000], ["ours", "storm"], earlier=True) == [(20_000, "ours"), (20_000, "storm")]


def test_without_time_nothing_more_is_measured() -> None:
    assert [each.supervisors for each in grow((100, 200), lambda n: measured(n, 900) if n < 200 else None)] == [100]


def test_workers_of_servers_that_die_go_to_the_last_one() -> None:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(PacemakerServer({}, port=0)) for _ in range(3)]
        addresses = [["127.0.0.1", server.port] for server in servers]
        orders = Orders("pacemaker", addresses, workers=12, connections=12, size=2000, seconds=0.5, warm_up=0.0)
        load = stack.enter_context(contextlib.closing(Load(orders)))
        assert load.run(0.1)["connections"] == [4, 4, 4]
        for server in servers[1:]:
            server.close()
        deadline = time.monotonic() + PATIENCE_SECS
        # Each worker turns to another server when its next heartbeat is due, within three seconds as a rule.
        while (found := load.run(4.0))["connections"] != [12, 0, 0]:
            assert time.monotonic() < deadline, found
        assert found["lost"] == 8
        assert servers[0].clients.metrics.storm()["pacemaker:send-pulse-count"] >= 8


def test_a_server_that_is_gone_is_a_result() -> None:
    with PacemakerServer({}, port=0) as server:
        gone = Running("ours", "pacemaker", (("127.0.0.1", server.port),), (os.getpid(),), "ours")
    found = measure(gone, supervisors=1, size=2000, seconds=0.1, core=min(os.sched_getaffinity(0)), warm_up=0.1)
    assert not found.sustained
    assert "it lets no more workers in" in found.why
    assert msgspec.json.encode(found.to_dict())
