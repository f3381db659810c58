"""Closing the state stores of a query that has ended.

Spark keeps the stores of an ended query open until its maintenance thread comes by, once a minute. It then uploads
their snapshots, and so makes a checkpoint anew that was removed meanwhile. Closed at once they do neither, and give
their memory back.
"""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = "org.apache.spark.sql.execution.streaming.state"


def close_state_stores(spark: SparkSession, checkpoint: Path, run_id: uuid.UUID | str) -> None:
    """Closes the stores that this JVM has open for a run of a query.

    Those of executors in other JVMs can't be reached from here; they end with the executors.

    Args:
        spark: the session that the query ran on.
        checkpoint: the query's checkpoint directory.
        run_id: the query's `runId`.
    """
    # All of this is Spark's inside: where it differs, the stores stay open as long as Spark likes.
    with contextlib.suppress(Exception):
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 # PySpark has no public way to state stores
        stores = _object(jvm, f"{_PACKAGE}.StateStore")
        nothing = _object(jvm, "scala.None")
        run = jvm.java.util.UUID.fromString(str(run_id))
        root = checkpoint / "state"
        # The path as Hadoop writes it: one slash after the scheme.
        location = f"file:{root}"
        store_id = getattr(jvm, f"{_PACKAGE}.StateStoreId")
        provider_id = getattr(jvm, f"{_PACKAGE}.StateStoreProviderId")
        for operator, partition in _stores_in(root):
            store = provider_id(store_id(location, operator, partition, "default"), run)
            if stores.isLoaded(store):
                stores.removeFromLoadedProvidersAndClose(store, nothing)


def _stores_in(root: Path) -> list[tuple[int, int]]:
    """Returns (operator, partition) of every store in a checkpoint."""
    folders = [path for path in root.glob("*/*") if path.is_dir()]
    names = [(path.parent.name, path.name) for path in folders]
    return sorted((int(op), int(part)) for op, part in names if op.isdigit() and part.isdigit())


def _object(jvm: Any, name: str) -> Any:
    """Returns a Scala object."""
    return getattr(getattr(jvm, f"{name}$"), "MODULE$")
