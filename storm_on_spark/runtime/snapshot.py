"""Snapshots of component instances: their attributes, as bytes.

The state of a plain bolt or spout is what its attributes hold. `Snapshots` takes them, leaves out what can't be
pickled (connections, locks, the collector: `prepare` makes them again) and puts them back over a prepared instance.
`__getstate__` and `__setstate__` are honoured where the class defines them.
"""

from __future__ import annotations

import logging
import pickle
from typing import Any

from storm_on_spark.api.collector import (
    BasicOutputCollector,
    BatchOutputCollector,
    OutputCollector,
    SpoutOutputCollector,
)
from storm_on_spark.api.context import TopologyContext
from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.state import KeyValueState
from storm_on_spark.runtime import pickling

log = logging.getLogger(__name__)

_VERSION = 1

_SERVICES = (
    OutputCollector,
    SpoutOutputCollector,
    BasicOutputCollector,
    BatchOutputCollector,
    TopologyContext,
    KeyValueState,
)
"""What the runtime hands to `prepare`, `open` and `init_state`: never part of a snapshot."""

_PICKLE_ERRORS = (
    pickle.PicklingError,
    TypeError,
    AttributeError,
    ValueError,
    RecursionError,
    NotImplementedError,
)


class Snapshots:
    """Takes and restores the attributes of one instance.

    Args:
        instance: the spout or bolt, after `prepare` or `open`.
        name: how messages call it.
    """

    def __init__(self, instance: object, name: str) -> None:
        self._instance = instance
        self._name = name
        self._own_state = _defines(instance, "__getstate__")
        self._own_restore = _defines(instance, "__setstate__")
        #: Attributes that could not be pickled once; each is warned about.
        self.transient: set[str] = set()

    def take(self) -> bytes:
        """Returns the attributes as bytes. Equal bytes mean equal state; unequal bytes may still mean equal state."""
        if self._own_state:
            return self._packed(self._instance.__getstate__())  # type: ignore[attr-defined]
        state = self._picklable()
        try:
            return self._packed(state)
        except _PICKLE_ERRORS:
            for name, error in pickling.unpicklable(state.items()):
                self.transient.add(name)
                log.warning(
                    "attribute %r of %s can't be pickled (%s), so it is not part of its state: it will be what "
                    "prepare or open makes of it after a restart",
                    name,
                    self._name,
                    error,
                )
            return self._packed(self._picklable())

    def _packed(self, state: Any) -> bytes:
        return pickling.dumps((_VERSION, state, sorted(self.transient)))

    def restore(self, data: bytes) -> None:
        """Puts a snapshot back over the instance.

        Raises:
            CheckpointError: it is of another version.
        """
        state, transient = _unpacked(data)
        if self._own_restore:
            self._instance.__setstate__(state)  # type: ignore[attr-defined]
            return
        attributes = _attributes(self._instance)
        # What was there but could not be pickled stays as `prepare` or `open` made it.
        for name in [name for name in self._picklable() if name not in state and name not in transient]:
            delattr(self._instance, name)
        if attributes is not None:
            attributes.update(state)
        else:
            for name, value in state.items():
                setattr(self._instance, name, value)

    def _picklable(self) -> dict[str, Any]:
        attributes = _attributes(self._instance)
        if attributes is None:
            attributes = {n: getattr(self._instance, n) for n in _slots(self._instance) if hasattr(self._instance, n)}
        return {
            name: value
            for name, value in attributes.items()
            if name not in self.transient and not isinstance(value, _SERVICES)
        }


def read_snapshot(data: bytes) -> Any:
    """Returns what a snapshot holds: the attributes by name, or what the instance's own `__getstate__` returned.

    Raises:
        CheckpointError: it is of another version.
    """
    return _unpacked(data)[0]


def _unpacked(data: bytes) -> tuple[Any, list[str]]:
    version, state, transient = pickling.loads(data)
    if version != _VERSION:
        raise CheckpointError(f"a snapshot has format version {version}; this release reads version {_VERSION}")
    return state, transient


def _attributes(instance: object) -> dict[str, Any] | None:
    return getattr(instance, "__dict__", None)


def _slots(instance: object) -> list[str]:
    return [name for cls in type(instance).__mro__ for name in getattr(cls, "__slots__", ())]


def _defines(instance: object, method: str) -> bool:
    """Whether a class below `object` defines `method` (Python 3.11 gave `object` a `__getstate__`)."""
    return any(method in vars(cls) for cls in type(instance).__mro__ if cls is not object)
