"""The specification of a run, for every process of it: the plan and the code of the components."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle

from storm_on_spark.api.errors import ComponentError, StormError
from storm_on_spark.api.reading import Reader
from storm_on_spark.api.topology import Topology
from storm_on_spark.api.worker import NO_PORT
from storm_on_spark.plan.live_homes import processes_of
from storm_on_spark.plan.model import PlacedPlan
from storm_on_spark.runtime.processes.lines.calls import Address
from storm_on_spark.runtime.processes.run_folder import run_folder
from storm_on_spark.runtime.storage import Folder, StoragePlace
from storm_on_spark.runtime.values import pickling


@dataclass(frozen=True)
class RunSpec:
    """One start of one topology."""

    name: str
    """The topology's name."""
    storm_id: str
    """Name and a unique part; the same when the topology continues from its checkpoint, so ids are repeatable."""
    start_id: str
    """Unique for each start; instances of an earlier start are not used again."""
    plan: PlacedPlan
    """The plan; its topology carries no component objects."""
    code: Mapping[str, bytes]
    """The components, cloudpickled one by one, by id."""
    sys_path: tuple[str, ...]
    """Folders of the driver's `sys.path` that workers need to import the user's modules."""
    folder: str = ""
    """The topology's own folder in the checkpoint, where workers leave notes; none for an empty string."""
    place: StoragePlace | None = None
    """How that is reached, where it is in a store."""
    local_folder: str = ""
    """This machine's folder for child processes; removed by the driver. Elsewhere it may be another."""
    worker_hooks: tuple[bytes, ...] = ()
    """The topology's worker hooks, cloudpickled one by one."""
    port: int = NO_PORT
    """The port of the slot that runs the topology."""
    readers: Mapping[str, Reader] = field(default_factory=dict)
    """By native spout, who reads its rows; Spark where it has none."""
    address: Address | None = None
    """Where the first live process hears calls of other machines; None if all processes are on the driver's."""
    owner: int = 0
    """The number of the claim to a checkpoint in a store; 0 for a directory, which has a lock."""

    @property
    def realtime(self) -> bool:
        """Whether tuples are executed between micro-batches."""
        return processes_of(self.plan) > 0

    @property
    def read_by_spark(self) -> frozenset[str]:
        """The spouts whose rows Spark reads."""
        return frozenset(name for name in self.plan.native_spouts if not self.readers.get(name, Reader()).by_task)

    def dumps(self) -> bytes:
        """Returns the specification as bytes for other processes of this run."""
        # In two layers: the plan may name the user's modules, for a custom grouping. They can be imported only
        # after `sys_path` is set.
        data: bytes = pickle.dumps((self.sys_path, _dumps(self)))
        return data

    def instance(self, component: str) -> Any:
        """Returns a fresh copy of a component.

        Raises:
            StormError: its code can't be loaded here, say because a module can't be imported.
        """
        try:
            instance = pickle.loads(self.code[component])
        except Exception as error:
            raise StormError(
                f'component "{component}" can\'t be loaded in a worker ({type(error).__name__}: {error}); '
                "ship the modules it needs, for example with --py-files"
            ) from error
        pickling.register_component(instance)
        return instance

    def open_folder(self) -> Folder | None:
        """Returns the topology's own folder in the checkpoint, if it has one."""
        if self.place is not None:
            return self.place.open()
        return Path(self.folder) if self.folder else None

    def load_all(self) -> None:
        """Makes what the code of any component can name known to `pickling`."""
        for component in self.code:
            with contextlib.suppress(StormError):
                self.instance(component)


def load_spec(data: bytes) -> RunSpec:
    """Returns the specification that `RunSpec.dumps` wrote; makes the user's modules importable first.

    Raises:
        StormError: the plan can't be loaded here, say because a module can't be imported.
    """
    sys_path, body = pickle.loads(data)
    add_to_path(sys_path)
    try:
        spec: RunSpec = pickle.loads(body)
    except Exception as error:
        raise StormError(
            f"the topology can't be loaded in a worker ({type(error).__name__}: {error}); "
            "ship the modules it needs, for example with --py-files"
        ) from error
    return spec


def add_to_path(folders: tuple[str, ...]) -> None:
    """Appends the folders to `sys.path` where they are missing."""
    for folder in folders:
        if folder not in sys.path:
            sys.path.append(folder)


def user_path() -> tuple[str, ...]:
    """Returns the folders that workers on this machine need to import the modules that the driver can import."""
    return tuple(dict.fromkeys(str(Path(entry or ".").absolute()) for entry in sys.path if not entry.endswith(".zip")))


def make_spec(
    plan: PlacedPlan,
    name: str,
    storm_id: str,
    start_id: str,
    sys_path: tuple[str, ...],
    folder: str = "",
    place: StoragePlace | None = None,
    port: int = NO_PORT,
    owner: int = 0,
) -> RunSpec:
    """Returns the specification of a run.

    Raises:
        ComponentError: a component can't be pickled; the message names the attribute at fault where it can.
    """
    components = plan.topology.components
    stripped = {component_id: dataclasses.replace(spec, component=None) for component_id, spec in components.items()}
    bare = dataclasses.replace(plan, topology=type(plan.topology)(stripped))
    local = str(run_folder(start_id))
    code, hooks = pickled(plan.topology), pickled_hooks(plan.topology)
    return RunSpec(name, storm_id, start_id, bare, code, sys_path, folder, place, local, hooks, port, owner=owner)


def pickled_hooks(topology: Topology) -> tuple[bytes, ...]:
    """Returns the worker hooks of a topology as bytes.

    Raises:
        ComponentError: one can't be pickled.
    """
    found = []
    for hook in topology.worker_hooks:
        try:
            found.append(_dumps(hook))
        except Exception as error:
            raise _cannot_pickle(f"worker hook {type(hook).__qualname__}", hook, error) from error
    return tuple(found)


def pickled(topology: Topology) -> dict[str, bytes]:
    """Returns the components of a topology as bytes, by id.

    Raises:
        ComponentError: a component can't be pickled; the message names the attribute at fault where it can.
    """
    code: dict[str, bytes] = {}
    for component_id, spec in topology.components.items():
        try:
            code[component_id] = _dumps(spec.component)
        except Exception as error:
            raise _cannot_pickle(component_id, spec.component, error) from error
    return code


def pickled_whole(topology: Topology) -> bytes:
    """Returns a topology with its components as bytes.

    Raises:
        ComponentError: a component can't be pickled; the message names the attribute at fault where it can.
    """
    pickled(topology)  # names what is at fault
    return _dumps(topology)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc] # cloudpickle has no types
    """Cloudpickle, which includes the definitions of a script, and also cached functions of a script."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, _CACHED) and (obj.__module__ == "__main__" or "<locals>" in obj.__qualname__):
            return _cached, (obj.__wrapped__, obj.cache_parameters())
        return super().reducer_override(obj)


_CACHED = type(functools.lru_cache(abs))


def _cached(function: Any, parameters: dict[str, Any]) -> Any:
    """Returns `function` with an empty cache: the cache of another process is not state."""
    return functools.update_wrapper(functools.lru_cache(**parameters)(function), function)


def _dumps(value: object) -> bytes:
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


def _cannot_pickle(component_id: str, component: object, error: Exception) -> ComponentError:
    culprits = []
    for attribute, value in getattr(component, "__dict__", {}).items():
        try:
            _dumps(value)
        except Exception:
            culprits.append(f"{attribute} ({type(value).__name__})")
    hint = f"; attribute(s) at fault: {', '.join(culprits)}: create them in prepare or open" if culprits else ""
    return ComponentError(component_id, None, "pickling", f"the component can't be pickled: {error}{hint}")
