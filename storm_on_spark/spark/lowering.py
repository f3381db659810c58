"""A physical plan as one Spark query: source, one operator a stage, sink."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from storm_on_spark.plan.model import StageKind
from storm_on_spark.runtime.spec import RunSpec
from storm_on_spark.spark.source import SCHEMA, SourceSettings, source_class
from storm_on_spark.spark.stages import ACKER_STATE, BOLT_STATE, StageProcessor, stateless_stage


def lower(spark: SparkSession, spec: RunSpec, settings: SourceSettings) -> DataFrame:
    """Returns the streaming frame whose rows are what reaches the sink.

    The plan is one chain: Spark recomputes a branch for each of its readers, so nothing ever branches. Where nothing is
    exchanged, Spark sorts the rows of a stage before the next one takes a Python worker: one worker serves all of them.
    """
    name = f"storm-{spec.start_id}"
    spark.dataSource.register(source_class(name, settings))
    frame = spark.readStream.format(name).load()
    partitions = spec.plan.partitions
    assert partitions is not None
    for stage in spec.plan.stages[1:]:
        if stage.kind is StageKind.STATELESS:
            run = stateless_stage(spec.start_id, settings.spec, stage.index)
            frame = frame.repartition(partitions, "key").mapInArrow(run, SCHEMA)
        else:
            variables = ACKER_STATE if stage.kind is StageKind.ACKER else BOLT_STATE
            processor = StageProcessor(spec.start_id, settings.spec, stage.index, variables)
            if not spec.plan.has_exchange(stage):
                # Tells Spark that it is one partition already, so that it puts no exchange before the operator.
                frame = frame.coalesce(1)
            frame = frame.groupBy("key").transformWithState(processor, SCHEMA, "Append", "None")
    return frame
