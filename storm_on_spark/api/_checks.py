"""Checks of the objects that users hand to the builder: are they what Storm calls, and can it call them?"""

from __future__ import annotations

import inspect
from typing import Final

from storm_on_spark.api._text import kind_of
from storm_on_spark.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout, BatchBolt
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.topology import ComponentKind

_BASES: Final[dict[ComponentKind, type]] = {
    ComponentKind.SPOUT: BaseRichSpout,
    ComponentKind.BOLT: BaseRichBolt,
    ComponentKind.BASIC_BOLT: BaseBasicBolt,
    ComponentKind.BATCH_BOLT: BatchBolt,
}

_CALLED_ON_ALL: Final[dict[str, tuple[str, ...]]] = {
    "declare_output_fields": ("declarer",),
    "get_component_configuration": (),
}

#: How each method is called: one that can't be called so would fail in every task, long after the user has looked.
_CALLED: Final[dict[ComponentKind, dict[str, tuple[str, ...]]]] = {
    ComponentKind.SPOUT: {
        "open": ("conf", "context", "collector"),
        "next_tuple": (),
        "ack": ("message_id",),
        "fail": ("message_id",),
        "activate": (),
        "deactivate": (),
        "close": (),
        "exhausted": (),
    },
    ComponentKind.BOLT: {"prepare": ("conf", "context", "collector"), "execute": ("tup",), "cleanup": ()},
    ComponentKind.BASIC_BOLT: {
        "prepare": ("conf", "context"),
        "execute": ("tup", "collector"),
        "cleanup": (),
    },
    ComponentKind.BATCH_BOLT: {
        "prepare": ("conf", "context", "collector"),
        "execute_batch": ("batch", "collector"),
        "cleanup": (),
    },
}

#: Java's spellings of optional methods: defined in a subclass they would never be called, in silence.
_JAVA_SPELLINGS: Final[dict[str, str]] = {
    "declareOutputFields": "declare_output_fields",
    "getComponentConfiguration": "get_component_configuration",
    "onTickTuple": "on_tick_tuple",
}


def kind_of_spout(component: object, where: str) -> ComponentKind:
    """Returns the kind of an object given to `set_spout`.

    Args:
        component: the object.
        where: what to call it in messages, e.g. `spout "lines"`.

    Raises:
        InvalidTopologyError: it is no spout, or can't be called as one.
    """
    _refuse_class(component, where)
    if isinstance(component, (BaseRichBolt, BaseBasicBolt, BatchBolt)):
        raise InvalidTopologyError(f"{where}: {type(component).__qualname__} is a bolt; add it with set_bolt")
    return _checked_kind(component, (ComponentKind.SPOUT,), where)


def kind_of_bolt(component: object, where: str) -> ComponentKind:
    """Returns the kind of an object given to `set_bolt`; arguments and errors as for `kind_of_spout`."""
    _refuse_class(component, where)
    if isinstance(component, BaseRichSpout):
        raise InvalidTopologyError(
            f"{where}: {type(component).__qualname__} is a spout; add it with set_spout"
        )
    return _checked_kind(
        component, (ComponentKind.BOLT, ComponentKind.BASIC_BOLT, ComponentKind.BATCH_BOLT), where
    )


def _refuse_class(component: object, where: str) -> None:
    if isinstance(component, type):
        raise InvalidTopologyError(
            f"{where}: needs an instance, not the class {component.__qualname__}: did you forget the parentheses?"
        )


def _checked_kind(component: object, kinds: tuple[ComponentKind, ...], where: str) -> ComponentKind:
    matching = [kind for kind in kinds if isinstance(component, _BASES[kind])]
    names = [_BASES[kind].__name__ for kind in matching or kinds]
    if not matching:
        raise InvalidTopologyError(
            f"{where}: must be an instance of {' or '.join(names)}, not {kind_of(component)}"
        )
    if len(matching) > 1:
        raise InvalidTopologyError(
            f"{where}: {type(component).__qualname__} inherits from {' and '.join(names)}; it can be only one of them"
        )
    _refuse_java_spellings(component, where)
    for method, arguments in {**_CALLED_ON_ALL, **_CALLED[matching[0]]}.items():
        _check_method(component, method, arguments, where)
    return matching[0]


def _refuse_java_spellings(component: object, where: str) -> None:
    for java, python in _JAVA_SPELLINGS.items():
        if hasattr(component, java) and not hasattr(_overridden(component, python), "__func__"):
            raise InvalidTopologyError(
                f"{where}: {type(component).__qualname__} defines {java}, which nothing calls; name it {python}"
            )


def _overridden(component: object, method: str) -> object:
    """Returns the bound method if a user's class or instance defines it, else `None`."""
    found = getattr(component, method, None)
    module = getattr(found, "__module__", "") or ""
    return None if module.startswith("storm_on_spark.api.") else found


def _check_method(component: object, method: str, arguments: tuple[str, ...], where: str) -> None:
    found = getattr(component, method, None)
    name = f"{type(component).__qualname__}.{method}"
    if not callable(found):
        raise InvalidTopologyError(f"{where}: {name} must be a method, not {kind_of(found)}")
    if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found):
        raise InvalidTopologyError(
            f"{where}: {name} is async, and nothing would await it; make it a plain method"
        )
    if inspect.isgeneratorfunction(found):
        raise InvalidTopologyError(
            f"{where}: {name} is a generator (it has a yield), so its body would never run; "
            "emit through the collector instead"
        )
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):  # some callables in C have no signature to check
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise InvalidTopologyError(
            f"{where}: {name} is called with ({', '.join(arguments)}), but takes {signature}"
        ) from None
