"""The base class of task hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from storm_on_spark.api.task.hooks import (
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    EmitInfo,
    ITaskHook,
    SpoutAckInfo,
    SpoutFailInfo,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from storm_on_spark.api.task.context import TopologyContext


class BaseTaskHook(ITaskHook):
    """Receives an event for every action of its task; override the methods that you need.

    There are no events for the batches that a `BatchBolt` executes and emits or a `BatchSpout` emits.

    Add a hook with `context.add_task_hook(hook)` in `open` or `prepare`, or add hooks to every task with the
    configuration key `topology.auto.task.hooks`, a list of class names, each as `module.Class`.

    Example:
        >>> from storm_on_spark.api import EmitInfo
        >>> class CountEmits(BaseTaskHook):
        ...     def prepare(self, conf, context):
        ...         self.emits = 0
        ...     def emit(self, info):
        ...         self.emits += 1
        >>> hook = CountEmits()
        >>> hook.prepare({}, None)
        >>> hook.emit(EmitInfo(["storm"], "default", 1, [2]))
        >>> hook.emits
        1
    """

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once, when the hook is added."""

    def cleanup(self) -> None:
        """Called when the task stops."""

    def emit(self, info: EmitInfo) -> None:
        """Called when the task emitted a tuple."""

    def spout_ack(self, info: SpoutAckInfo) -> None:
        """Called when a tuple of this spout task was acked."""

    def spout_fail(self, info: SpoutFailInfo) -> None:
        """Called when a tuple of this spout task failed."""

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        """Called when this bolt task executed a tuple."""

    def bolt_ack(self, info: BoltAckInfo) -> None:
        """Called when this bolt task acked a tuple."""

    def bolt_fail(self, info: BoltFailInfo) -> None:
        """Called when this bolt task failed a tuple."""
