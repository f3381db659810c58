"""Closing the state stores of a query that has ended.

Spark keeps the stores of an ended query open until its maintenance thread comes by, once a minute. It then uploads
their snapshots, which recreates a checkpoint that was removed since. Closed at once they do neither, and give
their memory back.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any

from storm_on_spark.runtime.storage import Storage
from storm_on_spark.spark.checkpoint.location import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = "org.apache.spark.sql.execution.streaming.state"


def close_state_stores(spark: SparkSession, root: Storage, location: Location, run_id: uuid.UUID | str) -> None:
    """Closes the stores that this JVM has open for a run of a query.

    Those of executors in other JVMs can't be reached from here; they end with the executors.

    Args:
        spark: the session that the query ran on.
        root: the query's checkpoint.
        location: where that is.
        run_id: the query's `runId`.
    """
    # All of this is Spark's inside: where it differs, the stores stay open as long as Spark likes.
    with contextlib.suppress(Exception):
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 # PySpark has no public way to state stores
        stores = _object(jvm, f"{_PACKAGE}.StateStore")
        nothing = _object(jvm, "scala.None")
        run = jvm.java.util.UUID.fromString(str(run_id))
        # As Hadoop writes it: a directory has one slash after the scheme.
        state = f"{location.url}/state"
        store_id = getattr(jvm, f"{_PACKAGE}.StateStoreId")
        provider_id = getattr(jvm, f"{_PACKAGE}.StateStoreProviderId")
        for operator, partition in _stores_in(root):
            store = provider_id(store_id(state, operator, partition, "default"), run)
            if stores.isLoaded(store):
                stores.removeFromLoadedProvidersAndClose(store, nothing)


def _stores_in(root: Storage) -> list[tuple[int, int]]:
    """Returns (operator, partition) of every store in a checkpoint."""
    names = [one.name.split("/") for one in root.list_folder("state", deep=True)]
    return sorted({(int(name[1]), int(name[2])) for name in names if len(name) > 3 and (name[1] + name[2]).isdigit()})


def _object(jvm: Any, name: str) -> Any:
    """Returns a Scala object."""
    return getattr(getattr(jvm, f"{name}$"), "MODULE$")
