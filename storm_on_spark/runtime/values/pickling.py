"""Pickling of tuple values and snapshots.

Plain pickle, protocol 5, does almost everything. It can't name a class or function that was defined in a script or a
notebook, since `__main__` is another module in every process. Such objects travel as (module, qualified name), and are
looked up among the globals of the topology's own components: those that the process has loaded, then all others. In
the process whose `__main__` is the script itself, they are simply there.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import sys
import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import cloudpickle

from storm_on_spark.api.errors import StormError

PROTOCOL = 5

_CLASSES = "_DYNAMIC_CLASS_TRACKER_BY_ID"


class Namespace:
    """The classes and functions to which `__main__.X` refers in one run.

    A worker executes several topologies, and several starts of one that was changed in a notebook: each has classes of
    its own under the same names.
    """

    def __init__(self) -> None:
        #: Names that components brought along, by module.
        self.names: dict[str, dict[str, Any]] = {}
        #: Methods that register further components; called when a name is not known.
        self.sources: list[weakref.WeakMethod[Callable[[], None]]] = []
        #: Classes that cloudpickle has made, by their number. It gives one class for a number and sets its attributes
        #: again with each pickle, even if another run was started with other values.
        self.classes: weakref.WeakValueDictionary[str, type] = weakref.WeakValueDictionary()


current = Namespace()
#: That of the run which this process executes now.


def enter(namespace: Namespace) -> None:
    """Selects the run whose classes and functions names refer to from here on.

    For a process that executes one run after the other, all on one thread.
    """
    global current  # A pickle names functions, and can't name the run that reads it.
    current = namespace
    if hasattr(cloudpickle.cloudpickle, _CLASSES):
        setattr(cloudpickle.cloudpickle, _CLASSES, namespace.classes)


# A process that executes one run alone, such as a spout host, enters no other.
enter(current)


def register_component(component: object) -> None:
    """Makes the classes and functions that a component's code can name known to `loads`."""
    for cls in type(component).__mro__:
        if cls.__module__ == "builtins":
            continue
        if not _importable(cls):
            current.names.setdefault(cls.__module__, {})[cls.__qualname__] = cls
        for function in vars(cls).values():
            function = getattr(function, "__func__", function)
            if isinstance(function, types.FunctionType):
                _register_globals(function.__globals__)
    for value in getattr(component, "__dict__", {}).values():
        # The function of which a component was made.
        if isinstance(value, types.FunctionType):
            _register_globals(value.__globals__)


def _register_globals(values: dict[str, Any]) -> None:
    for name, value in list(values.items()):
        if isinstance(value, (type, types.FunctionType)) and value.__qualname__ == name and not _importable(value):
            # The newest counts: in a notebook a class is defined again and again.
            current.names.setdefault(value.__module__, {})[name] = value


def register_source(load: Callable[[], None]) -> None:
    """Names a method that registers further components; it is called at most once, when a name is not known.

    Args:
        load: a bound method; forgotten with the object that it belongs to.
    """
    sources = current.sources
    sources[:] = [known for known in sources if known() is not None]
    sources.append(weakref.WeakMethod(load))


def _importable(obj: Any) -> bool:
    module = sys.modules.get(obj.__module__)
    if module is None:
        return False
    found: Any = module
    for part in obj.__qualname__.split("."):
        found = getattr(found, part, None)
        if found is None:
            return False
    return found is obj


def find(module: str, qualname: str) -> Any:
    """Returns the class or function `qualname` of the topology's code.

    Raises:
        StormError: no component of the topology knows that name.
    """
    found = _known(module, qualname)
    sources = current.sources
    while found is None and sources:
        load = sources.pop()()
        if load is not None:
            load()
            found = _known(module, qualname)
    if found is None:
        found = _brought_along(module, qualname)
    if found is None:
        raise StormError(
            f"{module}.{qualname} is needed to read a value, but no component of the topology uses that name; "
            "define it in a module that every worker can import"
        )
    return found


def _brought_along(module: str, qualname: str) -> Any:
    """Returns the newest class of that name that came with a component which doesn't name it, say by a global list."""
    made = [cls for cls in current.classes.values() if (cls.__module__, cls.__qualname__) == (module, qualname)]
    return made[-1] if made else None


def _known(module: str, qualname: str) -> Any:
    names = current.names.get(module, {})
    if qualname in names:
        return names[qualname]
    head, *rest = qualname.split(".")
    found = names.get(head, getattr(sys.modules.get(module), head, None))
    for part in rest:
        found = getattr(found, part, None)
    return found


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, (type, types.FunctionType)) and not _importable(obj):
            if "<locals>" in obj.__qualname__:
                raise pickle.PicklingError(f"{obj.__module__}.{obj.__qualname__} is defined inside a function")
            return find, (obj.__module__, obj.__qualname__)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except (AttributeError, ModuleNotFoundError):
            return find(module, name)


def dumps(value: Any, reducers: Mapping[type, Callable[[Any], Any]] | None = None) -> bytes:
    """Returns `value` pickled.

    Args:
        value: what to pickle.
        reducers: how objects of some types are pickled, as in `copyreg.dispatch_table`.

    Raises:
        pickle.PicklingError, TypeError, AttributeError: part of it can't be pickled.
    """
    try:
        if not reducers:
            return pickle.dumps(value, PROTOCOL)
        return _dump(pickle.Pickler, value, reducers)
    except (pickle.PicklingError, AttributeError, TypeError):
        return _dump(_Pickler, value, reducers or {})


def _dump(kind: type[pickle.Pickler], value: Any, reducers: Mapping[type, Callable[[Any], Any]]) -> bytes:
    buffer = io.BytesIO()
    pickler = kind(buffer, PROTOCOL)
    pickler.dispatch_table = {**copyreg.dispatch_table, **reducers}
    pickler.dump(value)
    return buffer.getvalue()


def loads(data: bytes | memoryview) -> Any:
    """Returns the value that `dumps` pickled. Only for bytes that this topology wrote itself.

    Raises:
        StormError: a class or function in it is not known here.
    """
    try:
        return pickle.loads(data)
    except (AttributeError, ModuleNotFoundError):
        # Named by a process in which its module is another.
        return _Unpickler(io.BytesIO(data)).load()
