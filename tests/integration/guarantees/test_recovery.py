"""Processes that die, and topologies that continue from their checkpoint: nothing is lost, nothing counts twice."""

from __future__ import annotations

import json
import os
import random
import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from processes import kill_group, killed, members, script
from pyspark.sql import SparkSession
from topologies import changed, puppets, survivors
from topologies.changed import small
from topologies.notes import read_notes
from waiting import eventually

from storm_on_spark import LocalCluster
from storm_on_spark.api.errors import CheckpointError, StormError, TopologyFailedError
from storm_on_spark.runtime.batches.rules import planning as rules
from storm_on_spark.runtime.batches.rules.restarts import RestartPolicy
from storm_on_spark.spark.checkpoint.directory import reset_checkpoint
from storm_on_spark.spark.state import read_bolt_state, read_pending_roots
from storm_on_spark.testing import (
    ManualClock,
    crashes,
    descendants,
    kill_spout_host,
    run_topology,
    running_topology,
)

T = 10


def check_exact(spark: SparkSession, checkpoint: Path, notes: Path, count: int) -> None:
    """Asserts that every number came through once: in the bolts' state, the spouts' and the acker's."""
    sums: Counter[int] = Counter()
    for state in read_bolt_state(spark, checkpoint, "sums").values():
        sums.update(state["sums"])
    assert sums == survivors.expected_sums(count)
    for state in read_bolt_state(spark, checkpoint, "join").values():
        assert state["waiting"] == {}
    assert read_pending_roots(spark, checkpoint) == []
    closed = {spout: rest for spout, *rest in read_notes(notes, "closed")}
    for spout in ("left", "right"):
        emitted, acks, fails = closed[spout]
        assert (emitted, fails) == (count, 0)
        assert set(acks) == {1}, f"{spout}: not every message was acked once"
    assert not list((checkpoint / "storm" / "outcomes").iterdir()), "acks that nobody was told of"


def test_a_killed_driver_goes_on_where_it_was(spark_session, tmp_path):
    count = 2000
    notes, checkpoint, tmp = tmp_path / "notes", tmp_path / "checkpoint", tmp_path / "tmp"
    notes.mkdir()
    seed = random.randrange(1 << 30)
    moments = random.Random(seed)
    partitions = moments.choice((1, 2))
    arguments = ("-m", "topologies.survivors", str(checkpoint), str(notes), str(count), str(partitions))

    def progress() -> int:
        return len(read_notes(notes, "progress"))

    # Only the driver's process: what belonged to it must notice, and end.
    with script(tmp, *arguments) as process:
        moment = moments.randint(5, 20)
        eventually(lambda: progress() > moment or process.poll() is not None, f"progress (seed {seed})", 100)
        process.kill()
        assert killed(process)
        eventually(lambda: not members(process.pid), "the end of JVM, workers and spout hosts")
    # Everything at once.
    with script(tmp, *arguments) as process:
        moment = progress() + moments.randint(5, 20)
        eventually(lambda: progress() > moment or process.poll() is not None, f"progress (seed {seed})", 100)
        kill_group(process)
        assert killed(process)
    assert list(tmp.glob("storm-run-*")), "of a driver that is killed with all others, nobody removes the run's folder"
    # What Spark leaves behind when it is killed while it writes.
    (checkpoint / "state" / ".1.changelog.31a6.TID1.tmp").write_bytes(b"half")
    with script(tmp, *arguments) as process:
        out, err = process.communicate(timeout=250)
        assert process.returncode == 0, err
        info = json.loads(out)
        assert (info["ended"], info["status"], info["failed"]) == (True, "COMPLETED", 0)

    begun = [at for spout, at in read_notes(notes, "begun") if spout == "left"]
    assert len(begun) == 3, f"the driver was not killed twice while it ran (seed {seed})"
    assert 0 == begun[0] < begun[1] < begun[2] < count
    check_exact(spark_session, checkpoint, notes, count)
    assert not list(tmp.iterdir()), "temporary files are left"
    assert not list(checkpoint.rglob("*.tmp")), "half-written files are left in the checkpoint"


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.soak), 2])
def test_killed_python_workers_leave_state_exact(nothing_left_behind, spark_session, tmp_path, partitions):
    count = 600
    conf = {
        "test.notes": str(tmp_path),
        "topology.checkpoint.dir": str(tmp_path / "checkpoint"),
        "topology.partitions": partitions,
    }
    captured = run_topology(survivors.crashing_bolts(count), conf=conf, spark=spark_session, capture=[])

    markers = [tmp_path / f"crash-relay-{count // 5}"]
    markers += [tmp_path / f"crash-sums-{value}" for value in (count // 3, count // 2, count - 1)]
    assert [crashes(marker) for marker in markers] == [1, 1, 1, 1], "a fault did not happen"
    assert Counter(captured.acked()) == Counter(range(count))
    assert captured.failed() == []
    sums: Counter[int] = Counter()
    for state in read_bolt_state(spark_session, tmp_path / "checkpoint", "sums").values():
        sums.update(state["sums"])
    assert sums == Counter({n: n for n in range(count)})


def test_killed_spout_hosts_are_started_again_and_lose_nothing(nothing_left_behind, spark_session, tmp_path):
    count = 6000
    conf = {
        "test.notes": str(tmp_path),
        "topology.checkpoint.dir": str(tmp_path / "checkpoint"),
        "topology.workers": 2,
        # So slow that both spouts still have something to emit when the last host is killed, also on a fast machine.
        "topology.max.spout.pending": 5,
        # A busy machine may need longer than the default to start a host again.
        "topology.message.timeout.secs": 1000,
    }
    with running_topology(survivors.survivors(count), conf=conf, spark=spark_session, capture=[]) as running:
        pids = []
        for fault in range(1, 4):
            running.wait_until(lambda _, n=fault: len(read_notes(tmp_path, "progress")) >= 8 * n)
            pids.append(kill_spout_host())
            # Not the same spout's next host, before that has begun.
            running.wait_until(lambda _, n=fault: len(read_notes(tmp_path, "begun")) >= 2 + n)
        captured = running.await_completion(240)
    assert len(set(pids)) == 3
    # Two hosts at the start and one more for each fault, each with one of the spouts.
    assert len(read_notes(tmp_path, "begun")) == 5
    messages = [error.message for error in captured.errors]
    assert sum("killed by SIGKILL" in message and "started again" in message for message in messages) == 3
    check_exact(spark_session, tmp_path / "checkpoint", tmp_path, count)


def test_a_spout_host_that_dies_again_and_again_ends_the_topology_with_a_reason(
    nothing_left_behind, spark_session, tmp_path, monkeypatch
):
    monkeypatch.setattr(rules, "RestartPolicy", lambda: RestartPolicy(pauses=(0.0, 0.1)))
    conf = {"test.notes": str(tmp_path)}
    with pytest.raises(TopologyFailedError) as caught:
        run_topology(survivors.crashing_spout(99, "next_tuple"), conf=conf, spark=spark_session, capture=[])
    assert crashes(tmp_path / "crash-spout") == 3
    assert "of spout numbers ended unexpectedly (killed by SIGKILL), after 2 restarts" in str(caught.value)


def test_a_spout_host_that_dies_while_it_opens_ends_the_start(nothing_left_behind, spark_session, tmp_path):
    conf = {"test.notes": str(tmp_path)}
    with pytest.raises(TopologyFailedError) as caught:
        run_topology(survivors.crashing_spout(99, "open"), conf=conf, spark=spark_session, capture=[])
    assert crashes(tmp_path / "crash-spout") == 1
    assert "of spout numbers ended unexpectedly (killed by SIGKILL) while it was opened" in str(caught.value)


def test_a_topology_whose_source_process_was_killed_says_so_and_goes_on_when_it_is_started_again(
    nothing_left_behind, spark_session, tmp_path
):
    orders = puppets.Orders(tmp_path)
    conf = {
        "test.notes": str(tmp_path),
        "topology.profile": "latency",
        "topology.checkpoint.dir": str(tmp_path / "checkpoint"),
        "topology.message.timeout.secs": 1000,
    }
    folder = tmp_path / "captured"
    with running_topology(puppets.puppets(), conf=conf, spark=spark_session, capture=[], directory=folder) as running:
        orders.give("hold one")
        orders.round_trip(running)
        (source,) = [
            p.pid for p in descendants() if "pyspark.sql.streaming.python_streaming_source_runner" in p.command
        ]
        os.kill(source, signal.SIGKILL)
        with pytest.raises(TopologyFailedError) as caught:
            orders.round_trip(running)
    assert "the process in which Spark asks for new input ended unexpectedly" in caught.value.reason
    assert "start the topology again" in caught.value.reason
    with running_topology(puppets.puppets(), conf=conf, spark=spark_session, capture=[], directory=folder) as running:
        orders.give("ack one", "end")
        captured = running.await_completion()
    assert Counter(captured.acked()) == Counter(["hold one", "ping 1", "ping 2", "ack one"])
    assert captured.failed() == []


def test_a_stopped_topology_goes_on_with_what_it_held_and_with_its_timeouts_also_if_these_are_changed(
    nothing_left_behind, spark_session, tmp_path
):
    orders = puppets.Orders(tmp_path)
    conf = {
        "test.notes": str(tmp_path),
        "topology.checkpoint.dir": str(tmp_path / "checkpoint"),
        "topology.message.timeout.secs": T,
    }

    def start(clock: ManualClock):
        return running_topology(
            puppets.puppets(),
            conf=conf,
            spark=spark_session,
            capture=[],
            clock=clock,
            directory=tmp_path / "captured",
        )

    clock = ManualClock()
    clock.advance(20 * T)
    with start(clock) as running:
        clock.advance(3)
        orders.give("hold one", "hold other", "hold late")
        orders.round_trip(running)
        clock.advance(T - 3 - 0.5)
        orders.round_trip(running)
    assert running.query.status_info().status == "KILLED"

    # What a crash cuts short at the end of the log does not count.
    (log,) = (tmp_path / "checkpoint" / "storm" / "spouts").glob("*/*.log")
    with log.open("ab") as file:
        file.write(log.read_bytes()[:40])

    clock = ManualClock()
    conf["topology.message.timeout.secs"] = 3 * T
    with start(clock) as running:
        assert clock.now_ms() == 21_000 * T - 500
        orders.give("ack one", "hold new")
        captured = orders.round_trip(running)
        assert "hold one" in captured.acked()
        # Old and new ones go by the new timeout: all were emitted between 18 and 21 T.
        clock.advance(3 * T)
        captured = orders.round_trip(running)
        assert captured.failed() == []
        # Counts follow the outcomes a moment later.
        running.wait_until(lambda captured: captured.info.pending == 3)
        clock.advance(0.5)
        captured = running.wait_until(lambda captured: len(captured.failed()) == 3)
        assert sorted(captured.failed()) == ["hold late", "hold new", "hold other"]
        orders.give("end")
        captured = running.await_completion()
    acks = Counter(captured.acked())
    assert set(acks.values()) == {1}
    assert len(captured.failed()) == 3

    # A run that has ended has nothing to do when it is started again.
    with start(ManualClock()) as running:
        again = running.await_completion()
    assert (again.info.emitted, again.acks, again.fails) == (0, captured.acks, captured.fails)


def test_failing_fast_commits_nothing_of_that_micro_batch_and_mended_code_goes_on_with_the_old_state(
    local_cluster: LocalCluster, spark_session, tmp_path
):
    checkpoint = tmp_path / "checkpoint"
    conf: dict[str, object] = {
        "topology.checkpoint.dir": str(checkpoint),
        "test.notes": str(tmp_path),
        "topology.partitions": 2,
        "topology.message.timeout.secs": 1000,
    }
    local_cluster.submit_topology("changed", {**conf, "test.count": 8, "topology.fail.fast": True}, changed.careless())
    with pytest.raises(TopologyFailedError, match="ValueError: 5 is too much"):
        local_cluster.await_completion("changed", 60)

    def seen() -> list[int]:
        return sorted(
            n for state in read_bolt_state(spark_session, checkpoint, "tally").values() for n in state["seen"]
        )

    assert seen() == list(range(changed.TOO_MUCH))

    # Code, executors, configuration, groupings and stateless bolts may change.
    conf |= {"test.count": 60, "topology.message.timeout.secs": 300, "topology.workers": 2}
    local_cluster.submit_topology("changed", conf, changed.mended())
    assert local_cluster.await_completion("changed", 60)
    assert seen() == list(range(60))
    states = read_bolt_state(spark_session, checkpoint, "tally")
    # What is new in the code is as prepared, and what was kept of the old configuration is kept.
    assert {(state["new"], state["old"], state["count"]) for state in states.values()} == {("new", "old", 8)}
    received = [record[-1] for record in read_notes(tmp_path, "received")]
    assert sorted(received) == [(n,) for n in range(changed.TOO_MUCH + 1, 60)]


def test_checkpoints_that_do_not_fit_are_refused(local_cluster: LocalCluster, spark_session, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    conf = {"topology.checkpoint.dir": str(checkpoint), "test.notes": str(tmp_path)}
    local_cluster.submit_topology("small", conf, small())
    assert local_cluster.await_completion("small", 60)

    def refusal(name: str, topology, where: Path = checkpoint, **more: object) -> str:
        with pytest.raises(StormError) as caught:
            local_cluster.submit_topology(name, {**conf, "topology.checkpoint.dir": str(where), **more}, topology)
        message = str(caught.value)
        assert "\n" not in message
        assert str(where) in message or "the checkpoint's offset" in message
        return message

    assert "belongs to topology 'small', not to 'other'" in refusal("other", small())
    changed = refusal("small", small(tasks=3))
    assert 'bolt "tally" had tasks 2, 3 and now has tasks 2, 3, 4; the number of tasks is fixed' in changed
    assert "--reset-checkpoint" in changed
    gone = refusal("small", small(bolt="tally2"))
    assert 'bolt "tally" is gone, but the checkpoint holds its state' in gone
    assert 'bolt "tally" has become stateless' in refusal("small", small(stateless=True))
    assert 'spout "numbers" had a stream "default" with the fields' in refusal("small", small(fields="number"))
    more_ackers = refusal("small", small(), **{"topology.acker.executors": 2})
    assert "there were 1 acker tasks and now there are 2" in more_ackers

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "metadata").write_text("{}")
    assert "is the checkpoint of another Spark query" in refusal("small", small(), foreign)
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    assert "can't be written" in refusal("small", small(), in_the_way)

    manifest = checkpoint / "storm" / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"version": 1', '"version": 99'))
    assert "has format version 99" in refusal("small", small())
    manifest.write_text(text[: len(text) // 2])
    assert "can't be read" in refusal("small", small())
    manifest.write_text(text)
    (log,) = (checkpoint / "storm" / "spouts").glob("*/*.log")
    data = log.read_bytes()
    log.write_bytes(data[:4] + b"\x63\x00" + data[6:])
    assert "spout log" in (refused := refusal("small", small()))
    assert "at position 0 has format version 99; this release reads" in refused
    log.write_bytes(data)
    offsets = max(
        (path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit()), key=lambda p: int(p.name)
    )
    text = offsets.read_text()
    newer = re.sub(r'"version": ?2\b', '"version":99', text)
    assert newer != text
    offsets.write_text(newer)
    assert "offset has format version 99; this release reads 2" in refusal("small", small())
    offsets.write_text(text)

    orders = puppets.Orders(tmp_path)
    used = tmp_path / "used"
    local_cluster.submit_topology("puppets", {**conf, "topology.checkpoint.dir": str(used)}, puppets.puppets())
    assert "is in use by a running topology" in refusal("puppets-2", puppets.puppets(), used)
    with pytest.raises(CheckpointError, match="is in use by a running topology"):
        reset_checkpoint(used)
    orders.give("end")
    assert local_cluster.await_completion("puppets", 60)


def test_a_reset_checkpoint_starts_afresh(local_cluster: LocalCluster, spark_session, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    conf = {"topology.checkpoint.dir": str(checkpoint)}
    for tasks in (2, 3):
        local_cluster.submit_topology("small", conf, small(tasks))
        assert local_cluster.await_completion("small", 60)
        states = read_bolt_state(spark_session, checkpoint, "tally")
        assert len(states) == tasks
        assert sum(state["count"] for state in states.values()) == 50
        (checkpoint / "mine.txt").touch()
        with pytest.raises(StormError, match=r"mine\.txt"):
            reset_checkpoint(checkpoint)
        (checkpoint / "mine.txt").unlink()
        reset_checkpoint(checkpoint)
        assert [path.name for path in checkpoint.iterdir()] == ["storm"], "with the lock"
