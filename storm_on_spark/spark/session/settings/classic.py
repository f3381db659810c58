"""Whether a session can run topologies: it must be a classic one, with the JVM's driver beside this process.

`docs/spark-sessions.md` lists what needs it.
"""

from __future__ import annotations

import os
from typing import Any

from storm_on_spark.api.errors import SetupError

_PAGE = "docs/spark-sessions.md says what for"


def require_classic(spark: Any) -> None:
    """Refuses a session that can't run topologies.

    Args:
        spark: the session that a user passed.

    Raises:
        SetupError: it is a Spark Connect session, or the platform gives no access to the JVM (serverless, shared
            access).
    """
    module = type(spark).__module__
    if module.startswith("pyspark.sql.connect"):
        raise SetupError(
            "topologies need a classic SparkSession, whose driver runs beside this process, and were given one of "
            f"Spark Connect ({module}.{type(spark).__name__}): run this on the driver's machine, or leave the session "
            f"out and a local one is started ({_PAGE})"
        )
    try:
        jvm = spark.sparkContext._jvm  # noqa: SLF001 # whether there is one is the question
        found = jvm is not None and spark.sparkContext.defaultParallelism > 0
        reason = "it has no JVM"
    except Exception as error:  # A platform may replace what it forbids with any object.
        found, reason = False, f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
    if not found:
        raise SetupError(
            "topologies need a classic SparkSession, whose JVM this process may call; the one that was given does not "
            f"allow that ({reason}), as on serverless compute or with shared access: use compute with access of a "
            f"single user, or leave the session out and a local one is started ({_PAGE})"
        )


def require_no_remote() -> None:
    """Refuses to start a session where PySpark would connect to a remote one.

    Raises:
        SetupError: `SPARK_REMOTE` names one, or `SPARK_CONNECT_MODE` asks for one.
    """
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        if os.environ.get(name):
            raise SetupError(
                f"{name} is set ({os.environ[name]}), so PySpark would make a session of Spark Connect, and topologies "
                f"need a classic one: unset it ({_PAGE})"
            )
