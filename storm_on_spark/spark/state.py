"""Reading the state of bolts and acker back from a checkpoint, with Spark's own `statestore` reader.

For the result of a finite run, for a look into a running topology, and as an oracle in tests: what is read
here was written by Spark, not by the code that is being tested.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from storm_on_spark.api.errors import CheckpointError, StormError
from storm_on_spark.api.text import html
from storm_on_spark.api.text.wording import did_you_mean, quoted, short_repr
from storm_on_spark.plan.fingerprint import other_version
from storm_on_spark.runtime.processes.ending.at_once import temporary_folder
from storm_on_spark.runtime.state.deltas import applied
from storm_on_spark.runtime.state.keyvalue.journal import ENTRIES
from storm_on_spark.runtime.state.keyvalue.pages import DIRECTORY, HEADER, PAGES
from storm_on_spark.runtime.state.keyvalue.state import StoredState
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore
from storm_on_spark.runtime.state.snapshot import read_snapshot
from storm_on_spark.runtime.state.version import StateVersions
from storm_on_spark.runtime.tracking.acker import INIT, AckerState
from storm_on_spark.spark.checkpoint.directory import last_batch, read_manifest
from storm_on_spark.spark.checkpoint.location import Location, location_of, place_of
from storm_on_spark.spark.query.operators import STATE
from storm_on_spark.spark.session.settings.classic import require_classic
from storm_on_spark.spark.session.settings.required import settings_applied

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_SHOWN = 20_000
"""Characters of a value in a notebook."""


class BoltState(dict[int, dict[str, Any]]):
    """Task -> attributes by name; a table in a notebook."""

    def _repr_html_(self) -> str:
        rows = [
            [task, name, type(value).__name__, html.Whole(short_repr(value, _MOST_SHOWN))]
            for task, attributes in sorted(self.items())
            # What a bolt's own `__getstate__` returns need not be a dict.
            for name, value in (attributes.items() if hasattr(attributes, "items") else [("", attributes)])
        ]
        head = html.line(f"State of {html.counted(len(self), 'task')}", strong=True)
        return html.block(head, html.table(["task", "attribute", "type", "value"], rows))


def read_bolt_state(spark: SparkSession, checkpoint: str | os.PathLike[str], component: str) -> BoltState:
    """Returns what the attributes of a stateful bolt were after the last micro-batch that was committed.

    Args:
        spark: any session.
        checkpoint: the topology's checkpoint directory.
        component: the bolt's id.

    Returns:
        Task -> attributes by name; without those that can't be pickled, such as collectors and connections.
        If the bolt defines `__getstate__`, what that returned stands for them. Tasks that never executed a
        tuple are missing.

    Raises:
        StormError: there is no such bolt in the topology, or it is stateless.
        CheckpointError: the checkpoint can't be read.
    """
    tasks = _tasks_of(spark, checkpoint, component)
    # The three are read one after the other, while a topology that runs continues.
    batch = _last_batch(spark, checkpoint)
    deltas = {
        task: count
        for task, _, record in state_values(spark, checkpoint, "version", batch)
        if task in tasks and (count := StateVersions.load(record).newest.deltas)
    }
    changes: dict[tuple[int, int], bytes] = {}
    if deltas:
        changes = {(task, index): change for task, index, change in state_values(spark, checkpoint, "entries", batch)}
    states = BoltState()
    for task, _, snapshot in state_values(spark, checkpoint, "snapshot", batch):
        if task in tasks:
            for number in range(deltas.get(task, 0)):
                snapshot = applied(snapshot, changes[task, -1 - number])
            states[task] = read_snapshot(snapshot)
    return states


def read_key_value_state(
    spark: SparkSession, checkpoint: str | os.PathLike[str], component: str
) -> dict[int, dict[Any, Any]]:
    """Returns what the `KeyValueState` of a bolt held after the last micro-batch that was committed, all in memory.

    Args:
        spark: any session.
        checkpoint: the topology's checkpoint directory.
        component: the bolt's id.

    Returns:
        Task -> values by key; of tasks that have written any.

    Raises:
        StormError: there is no such bolt in the topology, or it is stateless.
        CheckpointError: the checkpoint can't be read.
    """
    tasks = _tasks_of(spark, checkpoint, component)
    batch = _last_batch(spark, checkpoint)
    stores: dict[int, MemoryStore] = {}
    for name in ("version", ENTRIES, HEADER, DIRECTORY, PAGES):
        for task, index, value in state_values(spark, checkpoint, name, batch):
            if task in tasks:
                stores.setdefault(task, MemoryStore()).put(name, value, index)
    found = {}
    for task, store in sorted(stores.items()):
        state = StoredState()
        state.attach(store)
        state.load(store, StateVersions.load(store.get("version")).newest.entries)
        if len(state):
            found[task] = dict(state.items())
    return found


def _tasks_of(spark: SparkSession, checkpoint: str | os.PathLike[str], component: str) -> set[int]:
    """Returns the tasks of a bolt that has state."""
    components = _manifest(spark, checkpoint)["components"]
    stateful = [name for name, spec in components.items() if spec["stateful"] and not spec["spout"]]
    if component not in stateful:
        what = "is stateless" if component in components else "is not in the topology"
        raise StormError(
            f'"{component}" {what}; bolts with state: {quoted(stateful)}.{did_you_mean(component, stateful)}'
        )
    return set(components[component]["tasks"])


def read_pending_roots(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> list[int]:
    """Returns the roots of all tuple trees that are neither acked nor failed, ascending; empty after a drain.

    Args:
        spark: any session.
        checkpoint: the topology's checkpoint directory.

    Raises:
        CheckpointError: the checkpoint can't be read.
    """
    _manifest(spark, checkpoint)
    states = [AckerState.load(value, timeout_ms=1) for *_, value in state_values(spark, checkpoint, "pending")]
    # Acks that come after the end of their tree leave records without INIT behind until these expire.
    return sorted(root for state in states for root in state.roots[(state.marks & INIT) != 0].tolist())


def _manifest(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> dict[str, Any]:
    require_classic(spark)
    manifest = read_manifest(checkpoint, spark)
    if manifest is None:
        raise CheckpointError(f"{checkpoint} is not the checkpoint of a topology")
    if other := other_version(manifest.fingerprint):
        raise CheckpointError(f"{checkpoint} can't be read: {other}")
    return manifest.fingerprint


def _last_batch(spark: SparkSession, checkpoint: str | os.PathLike[str]) -> int | None:
    """Returns the number of the last micro-batch that was committed."""
    return last_batch(place_of(location_of(checkpoint), spark).open(), "commits")


def state_values(
    spark: SparkSession, checkpoint: str | os.PathLike[str], name: str, batch: int | None = None
) -> list[tuple[int, int, bytes]]:
    """Returns task, index and value of all that has a name in the state of any operator; a task has one operator."""
    require_classic(spark)
    place = location_of(checkpoint)
    found: list[tuple[int, int, bytes]] = []
    if not _has_state(spark, place):
        return found
    # The state store reports to its coordinator, which Spark starts with the manager of streaming queries: when
    # somebody first asks for that.
    _ = spark.streams
    # Without these settings Spark would start its own default provider on files of another.
    with settings_applied(spark), _plain_location(place) as location:
        operators = spark.read.format("state-metadata").load(location).collect()
        for operator in sorted({row["operatorId"] for row in operators}):
            reader = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", STATE)
            if batch is not None:
                reader = reader.option("batchId", batch)
            frame = reader.load(location).where(f"user_map_key.name = '{name}'")
            for row in frame.selectExpr("user_map_key.task", "user_map_key.index", "user_map_value.value").collect():
                found.append((row[0], row[1], bytes(row[2])))
    return found


def _has_state(spark: SparkSession, place: Location) -> bool:
    if place.path is not None:
        return (place.path / "state").is_dir()
    return last_batch(place_of(place, spark).open(), "commits") is not None


@contextlib.contextmanager
def _plain_location(place: Location) -> Iterator[str]:
    """Yields where Spark's reader finds a checkpoint: it looks for a%20b when it is given the path `a b`."""
    if place.path is None or quote(str(place.path)) == str(place.path):
        yield place.url
        return
    with temporary_folder("storm-on-spark-") as folder:
        link = folder / "checkpoint"
        link.symlink_to(place.path, target_is_directory=True)
        yield f"file:{link}"
