"""The faults, one module for each family, and the table of them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.faults.scenarios import (
    blocked,
    clock,
    cuts,
    damage,
    elsewhere,
    kills,
    machine,
    owners,
    pauses,
    storage,
)
from lab.faults.scenarios.scenario import Scenario
from lab.faults.stores import KINDS

WORKER_SECS = 10.0
"""Progress resumes within this time when something dies that the driver replaces."""
DRIVER_SECS = 25.0
"""Progress resumes within this time when the driver itself has to be started again."""
MACHINE_SECS = 60.0
"""Spark gives a machine up when it has been silent for a while, and executes the micro-batch again elsewhere."""
OWNERS_SECS = 40.0
"""If it is unknown whether the previous driver is dead, the next one waits until it has been silent."""

_HEALED: Mapping[str, Any] = {"limit_secs": WORKER_SECS}
"""For faults after which the driver continues by itself."""
_AGAIN: Mapping[str, Any] = {"limit_secs": DRIVER_SECS, "host_dies": True}
"""For faults after which the driver is restarted, and its spout hosts with it."""
_REALTIME = {"topology.profile": "realtime", "topology.partitions": 1}
_MICRO_BATCHES = {"topology.profile": "latency"}
_SHORT_TIMEOUT = {"topology.message.timeout.secs": pauses.TIMEOUT_SECS}
_MACHINE = {"topology.durability": "machine"}
_AN_EXECUTOR_EACH = "local-cluster[2,1,1024]"

SCENARIOS = (
    Scenario("control", "none", kills.nothing, on=KINDS, nothing_but_poison_fails=True),
    # In real time spouts begin before Spark does: when a worker is to die, there may be none yet.
    Scenario("worker", "SIGKILL of a Python worker", kills.python_worker, conf=_MICRO_BATCHES, on=KINDS, **_HEALED),
    Scenario("host", "SIGKILL of a spout host", kills.spout_host, on=KINDS, host_dies=True, **_HEALED),
    Scenario("executor", "SIGKILL of an executor", kills.executor, master=_AN_EXECUTOR_EACH, limit_secs=DRIVER_SECS),
    Scenario("jvm", "SIGKILL of the driver's JVM or source process", kills.jvm_or_source, **_AGAIN),
    Scenario("driver", "SIGKILL of the driver", kills.driver, on=KINDS, **_AGAIN),
    Scenario(
        "recovery", "SIGKILL of the driver, and again while it recovers", kills.driver_in_recovery, on=KINDS, **_AGAIN
    ),
    Scenario("commit", "SIGKILL of the driver between sink and commit", kills.driver_before_commit, on=KINDS, **_AGAIN),
    Scenario(
        "mixed", "SIGKILL of workers, hosts and drivers in turn", kills.mixed, conf=_MICRO_BATCHES, on=KINDS, **_AGAIN
    ),
    Scenario(
        "windows",
        "the same as `mixed`, in micro-batches, with windows that hold tuples",
        kills.mixed,
        conf=_MICRO_BATCHES,
        windows=True,
        micro_batches_only=True,
        **_AGAIN,
    ),
    Scenario(
        "live-windows",
        "SIGKILL of a live process, in real time, with windows that hold tuples",
        kills.live_process,
        conf=_REALTIME,
        windows=True,
        **_HEALED,
    ),
    Scenario(
        "profiles",
        "SIGKILL of the driver, which is started again with another profile",
        kills.change_of_profile,
        conf=_REALTIME,
        **_AGAIN,
    ),
    Scenario(
        "live", "SIGKILL of a live process, in real time", kills.live_process, conf=_REALTIME, on=KINDS, **_HEALED
    ),
    Scenario(
        "live-pause",
        "SIGSTOP of a live process, in real time",
        pauses.live_process,
        conf={**_REALTIME, **_SHORT_TIMEOUT},
        on=KINDS,
        **_HEALED,
    ),
    Scenario(
        "live-cut",
        "connection of a live process broken, in real time",
        cuts.live_connection,
        conf=_REALTIME,
        missing=cuts.no_foreign_sockets,
        **_HEALED,
    ),
    Scenario(
        "live-blocked",
        "spout task blocks, and a live process is killed meanwhile, in real time",
        blocked.spout,
        conf={**_REALTIME, **blocked.CONF},
        **_HEALED,
    ),
    Scenario(
        "live-elsewhere",
        "SIGKILL of a live process on one of two machines, in real time",
        elsewhere.live_process,
        conf=elsewhere.CONF,
        missing=elsewhere.why_not,
        **_HEALED,
    ),
    Scenario(
        "live-network",
        "a machine with a live process cut off from the others, in real time",
        elsewhere.network,
        conf=elsewhere.CONF,
        missing=elsewhere.why_not,
        limit_secs=DRIVER_SECS,
    ),
    Scenario(
        "live-machine",
        "loss of a machine with a live process, in real time",
        elsewhere.machine,
        conf=elsewhere.CONF,
        missing=elsewhere.why_not,
        limit_secs=MACHINE_SECS,
    ),
    Scenario(
        "pause",
        "SIGSTOP for longer than the message timeout",
        pauses.everybody,
        conf=_SHORT_TIMEOUT,
        # In real time most of these pauses stop no messages.
        least_secs=90.0,
        **_HEALED,
    ),
    Scenario(
        "full-checkpoint",
        "full disk under the checkpoint",
        storage.full_checkpoint,
        missing=storage.no_mounts,
        **_AGAIN,
    ),
    Scenario("full-log", "full disk under the spout logs", storage.full_spout_log, missing=storage.no_mounts, **_AGAIN),
    Scenario(
        "error-checkpoint",
        "I/O errors under the checkpoint",
        storage.errors_in_checkpoint,
        missing=storage.no_compiler,
        **_AGAIN,
    ),
    Scenario(
        "error-log",
        "I/O errors under the spout logs",
        storage.errors_in_spout_log,
        missing=storage.no_compiler,
        **_AGAIN,
    ),
    Scenario("truncated", "last segment of a spout log cut short in a crash", damage.truncated_log, **_AGAIN),
    Scenario("damaged", "damaged file in the checkpoint: refused, then put right", damage.damaged_checkpoint, **_AGAIN),
    Scenario("two-writers", "a writer of spout logs that was replaced writes on", machine.two_writers, **_AGAIN),
    Scenario(
        "two-owners",
        "a driver that was frozen and replaced wakes up",
        owners.two_owners,
        limit_secs=OWNERS_SECS,
        host_dies=True,
        on=KINDS[1:],
        missing=owners.no_namespaces,
    ),
    Scenario(
        "power",
        "loss of the machine: of what was not forced to the disk anything may be left",
        machine.power,
        conf=_MACHINE,
        missing=machine.no_power,
        **_AGAIN,
    ),
    Scenario(
        "rolled-back",
        "an older copy of a part of the checkpoint: refused, then put right",
        machine.rolled_back,
        **_AGAIN,
    ),
    Scenario(
        "power-tables",
        "the same as `power`, beside tables and files that lose nothing",
        machine.power,
        conf=_MACHINE,
        tables=True,
        missing=machine.no_power,
        **_AGAIN,
    ),
    Scenario(
        "rolled-back-tables",
        "an older copy of all of the checkpoint, beside newer tables and files: refused, then put right",
        machine.all_rolled_back,
        tables=True,
        **_AGAIN,
    ),
    Scenario(
        "clock",
        "wall clock jumps by an hour",
        clock.jumps,
        nothing_but_poison_fails=True,
        missing=storage.no_compiler,
        **_HEALED,
    ),
)

__all__ = ["SCENARIOS", "Scenario"]
