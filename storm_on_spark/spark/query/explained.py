"""What Spark makes of a plan, as text."""

from __future__ import annotations

import uuid

from pyspark.sql import SparkSession

from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.runtime.run.spec import make_spec
from storm_on_spark.spark.query.lowering import lower
from storm_on_spark.spark.query.reading.positions import SourceSettings
from storm_on_spark.spark.session import settings_applied


def spark_plan(plan: PlacedPlan, spark: SparkSession) -> str:
    """Returns Spark's logical plan of the query that a topology would run as; nothing is started."""
    spec = make_spec(plan, "explain", "explain", uuid.uuid4().hex, ())
    with settings_applied(spark, {"spark.sql.shuffle.partitions": str(plan.partitions)}):
        frame, _ = lower(spark, spec, SourceSettings(spec.start_id, spec.dumps(), "", plan.partitions))
        return str(frame._jdf.queryExecution().logical().toString())  # noqa: SLF001 # no public way
