"""The faults, one module for each family, and the table of them all."""

from __future__ import annotations

from lab.failover.scenarios import (
    drivers,
    ensemble,
    leaders,
    lost_state,
    pacemakers,
    real,
    scale,
    short,
    storage,
    submissions,
    versions,
)
from lab.failover.scenarios.scenario import Scenario

SCENARIOS = (
    Scenario("gate", "SIGKILL of the only Nimbus that has all code", leaders.gate),
    Scenario("lost-code", "loss of the only copy of a topology's code", leaders.lost_code),
    Scenario("leader", "SIGKILL of the leader", leaders.killed),
    Scenario("zombie", "SIGSTOP of the leader beyond its session, then SIGCONT", leaders.stopped),
    Scenario("partition", "the leader cut off from ZooKeeper", leaders.partition),
    Scenario("expiry", "session expiry of the leader", leaders.expired),
    Scenario("submission", "SIGKILL of the leader at each step of a submission", submissions.at_every_step),
    Scenario("storage", "storage of code on the Nimbuses' disks fails", submissions.storage),
    Scenario("delta", "code in a Delta table that is gone for a while; SIGKILL of leaders", storage.delta),
    Scenario("hdfs", "code in an HDFS that hangs for a while; SIGKILL of leaders", storage.hdfs),
    Scenario("zookeeper", "SIGKILL of one of three ZooKeeper servers, replaced by an empty one", ensemble.one),
    Scenario("quorum", "SIGKILL of two of three ZooKeeper servers", ensemble.two),
    Scenario("supervisor", "SIGKILL of a supervisor", drivers.supervisor),
    Scenario("host", "SIGKILL of a supervisor and its drivers", drivers.host),
    Scenario("driver", "SIGKILL of a driver; SIGSTOP of one beyond its session", drivers.driver),
    Scenario("mute", "drivers that never start on a supervisor that lives", drivers.mute),
    Scenario("upgrade", "stop and start of every daemon in turn", leaders.upgrade),
    Scenario("mixed", "SIGKILL of leaders of two releases; one can't read what the other wrote", versions.mixed),
    Scenario("checkpoint", "loss of a host with the checkpoint on its disk", lost_state.checkpoint),
    Scenario("scale", "none; many topologies", scale.grow, faulty=False),
    Scenario("pacemaker", "SIGKILL of one of three Pacemakers under load", pacemakers.one),
    Scenario("pacemaker-all", "SIGKILL of all Pacemakers, then of a host", pacemakers.all_of_them),
    Scenario("pacemaker-empty", "all Pacemakers restart, empty", pacemakers.restarted),
    Scenario("pacemaker-nimbus", "Pacemakers cut off from Nimbuses only", pacemakers.cut_off_nimbuses),
    Scenario("pacemaker-supervisors", "Pacemakers cut off from supervisors only", pacemakers.cut_off_supervisors),
    Scenario("pacemaker-side", "Pacemakers cut off from one host only", pacemakers.one_side),
    Scenario("pacemaker-half-open", "SIGSTOP of a Pacemaker: its connections stay open", pacemakers.half_open),
    Scenario("pacemaker-reader", "clients of a Pacemaker that never read", pacemakers.never_reads),
    Scenario("pacemaker-clock", "clocks of a host and of Pacemakers jump, while Pacemakers die", pacemakers.clock),
    Scenario(
        "spark",
        "leader, ZooKeeper, storage, supervisor, driver and host fail in turn under a topology on Spark",
        real.in_turn,
        spark=True,
    ),
    Scenario("spark-host", "SIGKILL of a supervisor and its drivers on Spark", real.hosts, spark=True),
    Scenario("short", "the form that `make test` runs", short.story),
)

__all__ = ["SCENARIOS", "Scenario"]
