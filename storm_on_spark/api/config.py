from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Scope(Enum):
    COMPONENT = "component"
    TOPOLOGY = "topology"


class Config(dict[str, Any]):
    TOPOLOGY_TASKS = "topology.tasks"
    TOPOLOGY_MAX_TASK_PARALLELISM = "topology.max.task.parallelism"
    TOPOLOGY_MAX_SPOUT_PENDING = "topology.max.spout.pending"
    TOPOLOGY_DEBUG = "topology.debug"
    TOPOLOGY_MESSAGE_TIMEOUT_SECS = "topology.message.timeout.secs"
    TOPOLOGY_ACKER_EXECUTORS = "topology.acker.executors"
    TOPOLOGY_TICK_TUPLE_FREQ_SECS = "topology.tick.tuple.freq.secs"
    TOPOLOGY_COMPONENT_RESOURCES_ONHEAP_MEMORY_MB = "topology.component.resources.onheap.memory.mb"
    TOPOLOGY_COMPONENT_RESOURCES_OFFHEAP_MEMORY_MB = "topology.component.resources.offheap.memory.mb"
    TOPOLOGY_COMPONENT_CPU_PCORE_PERCENT = "topology.component.cpu.pcore.percent"


def validate_conf(conf: Mapping[str, object], where: str, scope: Scope = Scope.TOPOLOGY) -> None: ...
def default_of(key: str) -> object:
    return 30


def effective_conf(
    topology_conf: Mapping[str, object], component_conf: Mapping[str, object] | None = None
) -> dict[str, Any]:
    return {**topology_conf, **(component_conf or {})}
