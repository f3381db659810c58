"""Families of Storm's keys that belong to what doesn't exist here, in Storm's `Config` classes or outside them.

They load, so that Storm's own files can be used as they are, and a topology that sets one gets a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from storm_on_spark.api.config.types import ConfigKey, ConfigType, accepted

_ZOOKEEPER = "the cluster does not read it yet"
_NIMBUS = "Nimbus does not read it yet"
_SUPERVISOR = "supervisors do not read it yet"
_THRIFT = "the Thrift service has no such setting"
_CLIENTS = "clients use Nimbus; supervisors have no Thrift service"
_JVM = "daemons are Python processes; set Spark's own options for the JVMs and the memory of a topology"
_BLOBS = "code distributors replace the blob store"
_RPC = "there is no such service"
_ISOLATION = "Spark's cluster manager isolates processes"
_METRICS = "daemons report no metrics"
_SCHEDULER = "Spark schedules the tasks"
_LOGS = "`storm-spark logs` shows what supervisors keep; see the keys `supervisor.logs.*`"
_WORKERS = "workers are processes of Spark, which watches them"

FAMILIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "backpressure.disruptor.": "a spout is held back by `topology.max.spout.pending`",
        "blacklist.scheduler.": _SCHEDULER,
        "blobstore.": _BLOBS,
        "client.blobstore.": _BLOBS,
        "dev.zookeeper.": "`storm-spark dev` keeps its ZooKeeper in a folder of its own",
        "drpc.": "there is no DRPC server",
        "executor.metrics.frequency.secs": _METRICS,
        "isolation.scheduler.": _SCHEDULER,
        "logs.groups": _LOGS,
        "logs.users": _LOGS,
        "logviewer.": _LOGS,
        "multitenant.scheduler.": _SCHEDULER,
        "nimbus.assignments.": _THRIFT,
        "nimbus.impersonation.": _THRIFT,
        "nimbus.local.assignments.": _THRIFT,
        "nimbus.reassign": "Nimbus always starts what has ended",
        "nimbus.scheduler.": _SCHEDULER,
        "nimbus.thrift.client.": _THRIFT,
        "nimbus.thrift.tls.": _THRIFT,
        "nimbus.topology.action.": _RPC,
        "nimbus.worker.heartbeats.": _NIMBUS,
        "num.stat.buckets": "statistics are those of micro-batches",
        "resource.aware.scheduler.": _SCHEDULER,
        "scheduler.config.": _SCHEDULER,
        "scheduler.display.resource": _SCHEDULER,
        "scheduling.timeout.seconds.per.topology": _SCHEDULER,
        "storm.auth.": _THRIFT,
        "storm.blobstore.": _BLOBS,
        "storm.cgroup.": _ISOLATION,
        "storm.cluster.metrics.": _METRICS,
        "storm.daemon.metrics.": _METRICS,
        "storm.disable.symlinks": _BLOBS,
        "storm.doAsUser": _THRIFT,
        "storm.exhibitor.": "name the ZooKeeper servers in `storm.zookeeper.servers`",
        "storm.group.mapping.": _THRIFT,
        "storm.home": "the daemons are those of the installed Python package",
        "storm.hdfs.": "Spark logs in to HDFS",
        "storm.health.check.": "watch the daemons with the tools of your system",
        "storm.local.mode.zmq": "local mode runs in this process and needs no such setting",
        "storm.log.dir": "daemons log to standard error: direct it to a file where you start them",
        "storm.log4j2.": "daemons are Python processes and log to standard error; there is no Log4j",
        "storm.messaging.": "tuples travel through Spark's exchanges",
        "storm.metricprocessor.": _METRICS,
        "storm.metricstore.": _METRICS,
        "storm.network.topography.": "Spark decides where tasks run",
        "storm.nimbus.zookeeper.acls.": _ZOOKEEPER,
        "storm.oci.": _ISOLATION,
        "storm.principal.": _THRIFT,
        "storm.resource.isolation.": _ISOLATION,
        "storm.supervisor.": _ISOLATION,
        "storm.thrift.tls.": _THRIFT,
        "storm.topology.": _JVM,
        "storm.worker.": _ISOLATION,
        "storm.workers.": "workers are processes of Spark",
        "storm.zookeeper.ssl.": _ZOOKEEPER,
        "supervisor.authorizer": _CLIENTS,
        "supervisor.blobstore.": _BLOBS,
        "supervisor.localizer.": _BLOBS,
        "supervisor.numa.": _ISOLATION,
        "supervisor.supervisors": "start one `storm-spark supervisor` per host",
        "supervisor.thrift.client.": _CLIENTS,
        "supervisor.thrift.tls.": _CLIENTS,
        "supervisor.thrift.transport": _CLIENTS,
        "supervisor.worker.default.version": _SUPERVISOR,
        "supervisor.worker.launcher": _ISOLATION,
        "supervisor.worker.version.": _SUPERVISOR,
        "task.credentials.poll.secs": _WORKERS,
        "task.heartbeat.frequency.secs": _WORKERS,
        "task.refresh.poll.secs": _WORKERS,
        "topology.worker.nimbus.thrift.client.use.tls": _THRIFT,
        "transactional.zookeeper.": "the state of transactions is in Spark's checkpoint",
        "ui.filter": "put a reverse proxy in front of it for authentication",
        "ui.http.": "put a reverse proxy in front of it for authentication",
        "ui.https.": "put a reverse proxy in front of it for HTTPS",
        "ui.title": "the web interface has a title of its own",
        "worker.blob.update.poll.interval.secs": _BLOBS,
        "worker.childopts": _JVM,
        "worker.gc.childopts": _JVM,
        "worker.heap.memory.mb": _JVM,
        "worker.heartbeat.frequency.secs": _WORKERS,
        "worker.log.level.reset.poll.secs": _LOGS,
        "worker.max.timeout.secs": _WORKERS,
        "worker.metrics": _METRICS,
        "worker.profiler.": _JVM,
        "worker.receiver.thread.count": "tuples travel through Spark's exchanges",
        "zmq.": "tuples travel through Spark's exchanges",
    }
)
"""How the keys of a family start -> why they have no effect."""

_ANY: Final = ConfigType("anything", lambda value: True)


def family_key(name: str) -> ConfigKey | None:
    """Returns what is known of a key that is in a family; None if it is in none.

    Example:
        >>> family_key("storm.log.dir").why
        'daemons log to standard error: direct it to a file where you start them'
    """
    for start, why in FAMILIES.items():
        if name.startswith(start):
            return accepted(name, _ANY, None, "A key of Storm's.", why)
    return None
