"""Whether Spark reads the same rows in the same order, when it executes a micro-batch or a task of it again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROW_BY_ROW: Final = frozenset(
    {
        "Project",
        "Filter",
        "TypedFilter",
        "Generate",
        "Union",
        "SubqueryAlias",
        "View",
        "MapInArrow",
        "MapInPandas",
        "StreamingRelation",
        "StreamingRelationV2",
        "StreamingDataSourceV2Relation",
    }
)
"""What Spark executes row by row where it reads. Everything else keeps state or reorders rows."""
_INSTEAD: Final = {
    "Aggregate": "aggregate in a bolt, or after the topology",
    "Join": "join in a bolt, such as EnrichBolt",
    "EventTimeWatermark": "declare windows with timestamps in a bolt",
    "Deduplicate": "deduplicate in a bolt by a fields grouping",
    "Distinct": "deduplicate in a bolt by a fields grouping",
    "RepartitionByExpression": "group by a fields grouping",
    "Repartition": "give the bolt after the spout its parallelism",
}
_ONCE_ONLY: Final = {"socket": "what it has sent is gone"}


def not_replayable(frame: DataFrame) -> str | None:
    """Returns why a topology can't read a streaming DataFrame, as a sentence; None if it can.

    A micro-batch is executed again after a crash, and a task after the loss of its executor. The rows must then be
    the same, in the same order in the same partitions, because messages are numbered by that.
    """
    if not frame.isStreaming:
        return "it is not a streaming DataFrame, as spark.readStream makes"
    for node in _nodes(frame._jdf.queryExecution().analyzed()):  # noqa: SLF001 # no public way to see a plan
        name = node.nodeName()
        kind = node.getClass().getSimpleName()
        if kind not in _ROW_BY_ROW:
            # A static side of a join, too, may be other rows tomorrow.
            instead = _INSTEAD.get(kind, "do that in a bolt, or after the topology")
            return f"its plan has {name}, which keeps state or reorders rows: {instead}"
        if not node.deterministic():
            return (
                f"its plan has {node.simpleString(100)}, which gives other values the second time; "
                "a micro-batch may be executed again: make them in a bolt"
            )
        if kind.startswith("Streaming") and (why := _ONCE_ONLY.get(str(node.toString()).lower().split("[")[0])):
            return f"its source can't be read again: {why}"
    return None


def sources_of(frame: DataFrame) -> int:
    """Returns how many sources a streaming DataFrame reads, one for each place in its plan."""
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 # no public way to see a plan
    return sum(node.getClass().getSimpleName().startswith("Streaming") for node in _nodes(plan))


def of_session(frame: DataFrame, spark: SparkSession) -> bool:
    """Returns whether a DataFrame was made in a session."""
    theirs: Any = frame.sparkSession._jsparkSession  # noqa: SLF001 # PySpark makes new objects for one session
    return bool(theirs.equals(spark._jsparkSession))  # noqa: SLF001


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for index in range(children.size()):
        yield from _nodes(children.apply(index))
