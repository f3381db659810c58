"""Snapshots of component instances: their attributes, as bytes.

The state of a plain bolt or spout is what its attributes hold. `Snapshots` takes them, leaves out what can't be
pickled (connections, locks, the collector: `prepare` makes them again) and puts them back over a prepared instance.
`__getstate__` and `__setstate__` are honoured where the class defines them.

An attribute may lead back to the instance itself (a bound method, a helper that knows its bolt) or to what `prepare`
was given, or to a metric that is registered. Such references are pickled by name, so that after a restore they lead to
the living instance, collector and metric and not to copies of them.

A component that a front end made may be a shell around an object of the user's. It names that object in `state_holder`,
and in `state_services` the values that it gave to it; the attributes of the holder are the state then.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.metrics.instruments import INSTRUMENTS, Instrument
from storm_on_spark.api.state import KeyValueState
from storm_on_spark.api.task.collector import (
    BasicOutputCollector,
    BatchOutputCollector,
    OutputCollector,
    SpoutOutputCollector,
)
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.task.credentials import Credentials, ICredentialsListener
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.runtime.processes import credentials
from storm_on_spark.runtime.values import pickling
from storm_on_spark.runtime.values.frozen import CONSTANT

log = logging.getLogger(__name__)

_VERSION = 1

warned_of_size: set[str] = set()
#: Instances, by name, whose large attributes have been warned about.

warned_of_secrets: set[tuple[str, str]] = set()
#: Instances, by name, and their attributes that have been warned about because they hold a credential.

_SERVICES = (
    OutputCollector,
    SpoutOutputCollector,
    BasicOutputCollector,
    BatchOutputCollector,
    TopologyContext,
    KeyValueState,
    Instrument,
    Credentials,
)
"""Types that the runtime passes to `prepare`, `open`, `init_state` and `set_credentials`: never part of a snapshot."""


class Snapshots:
    """Takes and restores the attributes of one instance.

    Args:
        instance: the spout or bolt, after `prepare` or `open`.
        name: how messages call it.
        given: what `prepare` or `open` was given.
    """

    def __init__(self, instance: object, name: str, given: Sequence[object] = ()) -> None:
        holder = getattr(instance, "state_holder", None)
        if holder is not None:
            given = (*given, *getattr(instance, "state_services", ()))
            instance = holder
        self._instance = instance
        self._listens = isinstance(instance, ICredentialsListener)
        #: How messages call it.
        self.name = name
        self._given = tuple(given)
        #: What is not state: metrics that the component has registered, and resources of the process; with their names.
        self._shared = {
            id(known): (known, name)
            for context in given
            if isinstance(context, TopologyContext)
            for name, known in context.shared_objects().items()
        }
        # Values of built-in types never ask a reducer.
        shared = (type(known) for known, _ in self._shared.values())
        self._reducers: dict[type, Callable[[Any], Any]] = dict.fromkeys(
            (type(instance), *map(type, given), *shared), self._reduce
        )
        self._reducers.update(dict.fromkeys(INSTRUMENTS.values(), _reduce_instrument))
        self._slots = _slots(type(instance))
        #: Whether the class itself says what the state is.
        self.own_state = _defines(instance, "__getstate__")
        self._own_restore = _defines(instance, "__setstate__")
        #: The attributes of a prepared instance. One that a snapshot neither has nor deletes is transient or new in
        #: the code.
        self._born = frozenset(self._attributes())
        #: Attributes that could not be pickled once; each is warned about.
        self.transient: set[str] = set()
        #: The snapshot of the instance as `prepare` or `open` made it.
        self.prepared = self.take()

    def take(self) -> bytes:
        """Returns the attributes as bytes. Equal bytes mean equal state; unequal bytes may still mean equal state.

        Raises:
            TypeError: the instance's own `__getstate__` returns something that can't be pickled or put back.
        """
        if self.own_state:
            state = self._instance.__getstate__()  # type: ignore[attr-defined]
            if not (self._own_restore or isinstance(state, dict)):
                raise TypeError(
                    f"__getstate__ of {self.name} returns {type(state).__name__}, not a dict of attributes; "
                    "define __setstate__, which takes it"
                )
            return self._packed(state)
        state = self._picklable()
        try:
            return self._packed(state)
        except Exception:  # whatever the attributes' own methods raise
            self._notice_transient(state)
            return self._packed(self._picklable())

    def largest(self) -> tuple[str, int]:
        """Returns the attribute with most bytes when it is pickled, and these; "" for a bolt's own `__getstate__`."""
        if self.own_state:
            return "", len(self.take())
        sizes = {}
        for name, value in self._picklable().items():
            sizes[name] = len(pickling.dumps(value, self._reducers))
        return max(sizes.items(), key=lambda item: item[1], default=("", 0))

    def restore(self, data: bytes) -> None:
        """Puts a snapshot back over the instance.

        Raises:
            CheckpointError: it is of another version, or the code of today can't read it.
        """
        _live.objects = (self._instance, *self._given)
        try:
            snapshot = _unpacked(data)
            if self._own_restore:
                self._set_state(snapshot.state)
                return
            state = snapshot.state if self.own_state else {**self._remains(snapshot), **snapshot.state}
        except CheckpointError:
            raise
        except Exception as error:  # a class that was renamed, or whatever `__setstate__` raises
            raise CheckpointError(
                f"the code of {self.name} can't read its saved state ({type(error).__name__}: {error}); undo what was "
                "changed in the code, or start afresh with --reset-checkpoint"
            ) from error
        finally:
            _live.objects = ()
        for name, value in state.items():
            if name in self._slots:
                setattr(self._instance, name, value)
            else:
                # Not by `setattr`, which the class may have redefined.
                self._instance.__dict__[name] = value

    def _set_state(self, state: Any) -> None:
        services = {name: value for name, value in self._attributes().items() if self._is_given(value)}
        self._instance.__setstate__(state)  # type: ignore[attr-defined]
        for name, value in services.items():
            # A `__setstate__` may replace all attributes, also those that `prepare` set.
            if not hasattr(self._instance, name):
                setattr(self._instance, name, value)

    def _remains(self, snapshot: _Snapshot) -> dict[str, Any]:
        """Deletes the attributes that are not in a snapshot; returns those that keep their prepared values."""
        missing = []
        for name in self._picklable().keys() - snapshot.state.keys():
            if name in self._born and name not in snapshot.deleted:
                missing.append(name)
            else:
                delattr(self._instance, name)
        prepared: dict[str, Any] = _unpacked(self.prepared).state if missing else {}
        return {name: prepared[name] for name in missing if name in prepared}

    def _packed(self, state: Any) -> bytes:
        deleted = [] if self.own_state else sorted(self._born.difference(self._attributes()))
        return pickling.dumps((_VERSION, state, deleted), self._reducers)

    def _picklable(self) -> dict[str, Any]:
        attributes = self._attributes()
        if self._listens:
            self._notice_secrets(attributes)
        return {
            name: value
            for name, value in attributes.items()
            if name not in self.transient and not self._is_given(value)
        }

    def _attributes(self) -> dict[str, Any]:
        instance = self._instance
        slots = {name: getattr(instance, name) for name in self._slots if hasattr(instance, name)}
        return {**slots, **instance.__dict__}

    def _is_given(self, value: object) -> bool:
        if self._listens and credentials.known().holds_secret(value):
            return True
        if type(value) in CONSTANT:
            return False
        if isinstance(value, _SERVICES) or id(value) in self._shared:
            return True
        return any(value is given for given in self._given)

    def _notice_transient(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            try:
                pickling.dumps(value, self._reducers)
            except Exception as error:
                self.transient.add(name)
                log.warning(
                    "attribute %r of %s can't be pickled (%s), so it is not part of its state: it will be what "
                    "prepare or open makes of it after a restart",
                    name,
                    self.name,
                    error,
                )

    def _notice_secrets(self, attributes: dict[str, Any]) -> None:
        """Warns of attributes that are left out only because their values equal credentials."""
        holds, expected = (
            credentials.known().holds_secret,
            credentials.set_with_credentials.get(type(self._instance), ()),
        )
        for name, value in attributes.items():
            if name not in expected and (self.name, name) not in warned_of_secrets and holds(value):
                warned_of_secrets.add((self.name, name))
                log.warning(
                    "attribute %r of %s equals a credential that was pushed, or holds one, so it is not part of its "
                    "state: assign it in set_credentials, which is called after a restart, too, or keep another value",
                    name,
                    self.name,
                )

    def _reduce(self, obj: Any) -> Any:
        for index, known in enumerate((self._instance, *self._given)):
            if obj is known:
                return _alive, (index,)
        if id(obj) in self._shared:
            return _shared, self._shared[id(obj)][1]
        return obj.__reduce_ex__(pickling.PROTOCOL)


def warn_of_size(snapshots: Snapshots, size: int, limit: int) -> None:
    """Warns once in a process that an instance's attributes are large, and says what to do."""
    if snapshots.name in warned_of_size:
        return
    warned_of_size.add(snapshots.name)
    name, bytes_of_it = snapshots.largest()
    which = f"attribute {name!r}" if name else "what its __getstate__ returns"
    log.warning(
        f"the attributes of {snapshots.name} take {size / (1 << 20):.1f} MB, most of "
        f"them {which} with {bytes_of_it / (1 << 20):.1f} MB, and are pickled whole after each micro-batch: keep "
        "what is large in the KeyValueState of a BaseStatefulBolt, of which only changes are written "
        f"(topology.state.attribute.warn.mb is {limit >> 20})"
    )


class _Snapshot(NamedTuple):
    state: Any
    #: Attributes that `prepare` made and that are gone.
    deleted: list[str]


def read_snapshot(data: bytes) -> Any:
    """Returns what a snapshot holds: the attributes by name, or what the instance's own `__getstate__` returned.

    Raises:
        CheckpointError: it is of another version.
    """
    return _unpacked(data).state


def _unpacked(data: bytes) -> _Snapshot:
    version, *content = pickling.loads(data)
    if version != _VERSION:
        raise CheckpointError(other_format("a snapshot", version, _VERSION))
    return _Snapshot(*content)


_live = threading.local()
#: `objects`: what references in the snapshot that this thread restores lead to; empty outside `Snapshots.restore`.


def _alive(index: int) -> object:
    objects: tuple[object, ...] = getattr(_live, "objects", ())
    return objects[index] if index < len(objects) else _NotHere()


def _reduce_instrument(instrument: Any) -> Any:
    return _shared, (instrument.kind, instrument.name)


def _shared(kind: str, name: str) -> object:
    """Returns the metric or resource of that name of the task that is restored."""
    for known in getattr(_live, "objects", ()):
        if isinstance(known, TopologyContext):
            found = known.get_resource(name) if kind == "resource" else known.metrics.living(kind, name)
            if found is not None:
                return found
    return _NotHere()


class _NotHere:
    """Stands for the bolt or its collector, and for their methods, where a snapshot is only read."""

    def __getattr__(self, name: str) -> _NotHere:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __repr__(self) -> str:
        return "<not part of the state>"


def _slots(cls: type) -> frozenset[str]:
    """Returns the attributes that live in slots, under the names by which they are accessed."""
    names = set()
    for base in cls.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            private = name.startswith("__") and not name.endswith("__")
            names.add(f"_{base.__name__.lstrip('_')}{name}" if private else name)
    return frozenset(names - {"__dict__", "__weakref__"})


def _defines(instance: object, method: str) -> bool:
    """Whether a class below `object` defines `method` (Python 3.11 gave `object` a `__getstate__`)."""
    return any(method in vars(cls) for cls in type(instance).__mro__ if cls is not object)
