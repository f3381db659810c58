"""What a step of a job knows about its run.

The function of a step is called with a `StepContext`, and with each option as a keyword. The step fails if the function
raises. If it returns a text, that is the exit status of the step; otherwise the status is `COMPLETED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storm_on_spark.spark.session.jvm.java import require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class StepContext:
    """The first argument of a step's function.

    Args:
        job: the job's name.
        step: the step's label.
        execution: number of the job's execution; grows with every launch.
        parameters: of the launch.

    Example:
        >>> def clean(context, path):
        ...     context.spark.read.parquet(path).dropna().write.parquet(f"{path}-{context.parameters['day']}")
    """

    job: str
    step: str
    execution: int
    parameters: Mapping[str, str]

    @property
    def spark(self) -> SparkSession:
        """The SparkSession of this step: on all cores of this machine, unless Spark's own configuration names a master.

        Raises:
            SetupError: no suitable Java was found.
        """
        return self.session()

    def session(self, master: str = "", **conf: Any) -> SparkSession:
        """Returns the SparkSession of this step.

        Args:
            master: of Spark; empty for that of Spark's configuration, or else `local[*]`.
            conf: settings of Spark, with `_` instead of `.`.

        Raises:
            SetupError: no suitable Java was found.
        """
        from pyspark import SparkConf
        from pyspark.sql import SparkSession

        require_java()
        known = SparkConf()
        builder = SparkSession.builder.appName(f"{self.job}.{self.step}")
        if master or not known.contains("spark.master"):
            builder = builder.master(master or "local[*]")
        for name, value in {"spark.ui.enabled": "false", **conf}.items():
            builder = builder.config(name.replace("_", "."), str(value))
        return builder.getOrCreate()
