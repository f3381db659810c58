"""A physical plan as one Spark query: source, operators, sink."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from storm_on_spark.plan.model import StageKind
from storm_on_spark.runtime.spec import RunSpec
from storm_on_spark.spark.source import SCHEMA, SourceSettings, source_class
from storm_on_spark.spark.stages import StagesProcessor, stateless_stage


def lower(spark: SparkSession, spec: RunSpec, settings: SourceSettings) -> DataFrame:
    """Returns the streaming frame whose rows are what reaches the sink.

    The plan is one chain: Spark recomputes a branch for each of its readers, so nothing ever branches.
    """
    plan = spec.plan
    name = f"storm-{spec.start_id}"
    spark.dataSource.register(source_class(name, settings, plan.joined))
    frame = spark.readStream.format(name).load()
    if plan.joined:
        # One partition: Spark is told that it is one already, so that it puts no exchange before the operator.
        return _with_state(frame.coalesce(1), StagesProcessor(spec.start_id, settings.spec, None))
    partitions = plan.partitions
    assert partitions is not None
    for stage in plan.stages[1:]:
        if stage.kind is StageKind.STATELESS:
            run = stateless_stage(spec.start_id, settings.spec, stage.index)
            frame = frame.repartition(partitions, "key").mapInArrow(run, SCHEMA)
        else:
            frame = _with_state(frame, StagesProcessor(spec.start_id, settings.spec, stage.index))
    return frame


def _with_state(frame: DataFrame, processor: StagesProcessor) -> DataFrame:
    return frame.groupBy("key").transformWithState(processor, SCHEMA, "Append", "None")
