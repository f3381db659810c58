"""A physical plan as one Spark query: source, operators, sink."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from pyspark.sql import DataFrame, SparkSession, functions

from storm_on_spark.api.errors import ComponentError
from storm_on_spark.plan.model import Operator
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.spouts.native import PARTITION
from storm_on_spark.spark.query.null_lists import without_nulls
from storm_on_spark.spark.query.operators import OperatorProcessor, native_source, stateless_operator
from storm_on_spark.spark.query.reading.positions import SourceSettings
from storm_on_spark.spark.query.reading.replayable import not_replayable, sources_of
from storm_on_spark.spark.query.reading.source import SCHEMA, source_class

_THRESHOLD: Final = "spark.broadcast.UDFCompressionThreshold"


def lower(spark: SparkSession, spec: RunSpec, settings: SourceSettings) -> tuple[DataFrame, dict[str, range]]:
    """Returns the streaming DataFrame whose rows reach the sink, and the places of native spouts' sources in it.

    The plan is one chain: Spark recomputes a branch for each of its readers, so nothing ever branches.
    """
    operators = spec.plan.operators
    name = f"storm-{spec.start_id}"
    spark.dataSource.register(source_class(name, settings, read_later=operators[0].state))
    frame = spark.readStream.format(name).load()
    places, count = {}, 1
    for component in spec.plan.native_spouts:
        rows = _native(spark, spec, settings, component)
        places[component] = range(count, count + sources_of(rows))
        count = places[component].stop
        frame = frame.union(rows)
    with _code_with_tasks(spark):
        for index, operator in enumerate(operators):
            frame = _lowered(frame, index, operator, settings)
    return frame, places


@contextlib.contextmanager
def _code_with_tasks(spark: SparkSession) -> Iterator[None]:
    """Lets Spark send code with each task also if it is large, such as a bolt with a model in it.

    Spark makes a broadcast of code of more than 1 MB, which the process can't read in which it asks an operator with
    state for its state variables (Spark 4.2.1: BROADCAST_VARIABLE_NOT_LOADED).
    """
    conf = spark.sparkContext._jsc.sc().conf()  # noqa: SLF001 # a session's public settings can't change it
    before = conf.get(_THRESHOLD, None)
    conf.set(_THRESHOLD, f"{2**31 - 1}b")
    try:
        yield
    finally:
        if before is None:
            conf.remove(_THRESHOLD)
        else:
            conf.set(_THRESHOLD, before)


def _native(spark: SparkSession, spec: RunSpec, settings: SourceSettings, component: str) -> DataFrame:
    """Returns what a native spout's rows become for the first operator."""
    spout = spec.instance(component)
    rows = (spout.read if component in spec.read_by_spark else spout.read_nothing)(spark)
    if not isinstance(rows, DataFrame) or not rows.isStreaming:
        raise ComponentError(component, None, "read", "it must return a streaming DataFrame, as spark.readStream makes")
    if (why := not_replayable(rows)) is not None:
        raise ComponentError(component, None, "read", why)
    rows, layout = without_nulls(rows)
    return rows.withColumn(PARTITION, functions.spark_partition_id()).mapInArrow(
        native_source(settings, component, layout), SCHEMA
    )


def _lowered(frame: DataFrame, index: int, operator: Operator, settings: SourceSettings) -> DataFrame:
    if operator.state:
        if not operator.exchange:
            # Spark is told that the rows are in one partition already, so that it puts no exchange there.
            frame = frame.coalesce(1)
        processor = OperatorProcessor(settings.start_id, settings.spec, index)
        return frame.groupBy("key").transformWithState(processor, SCHEMA, "Append", "None")
    if operator.source is not None:
        return frame  # the source has executed it as it read
    run = stateless_operator(settings.start_id, settings.spec, index)
    return frame.repartition(settings.partitions, "key").mapInArrow(run, SCHEMA)
