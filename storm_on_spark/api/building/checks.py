"""Checks of the objects that users pass to the builder: their type, and the signatures of their methods."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

from storm_on_spark.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout, BatchBolt, BatchSpout, NativeSpout
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.api.topology import ComponentKind

if TYPE_CHECKING:
    from collections.abc import Iterator

_BASES: Final[dict[ComponentKind, type]] = {
    ComponentKind.SPOUT: BaseRichSpout,
    ComponentKind.BATCH_SPOUT: BatchSpout,
    ComponentKind.NATIVE_SPOUT: NativeSpout,
    ComponentKind.BOLT: BaseRichBolt,
    ComponentKind.BASIC_BOLT: BaseBasicBolt,
    ComponentKind.BATCH_BOLT: BatchBolt,
}

_CALLED_ON_ALL: Final[dict[str, tuple[str, ...]]] = {
    "declare_output_fields": ("declarer",),
    "get_component_configuration": (),
}

_SPOUT_CALLED: Final[dict[str, tuple[str, ...]]] = {
    "open": ("conf", "context", "collector"),
    "next_tuple": (),
    "ack": ("message_id",),
    "fail": ("message_id",),
    "activate": (),
    "deactivate": (),
    "close": (),
    "exhausted": (),
}

#: The arguments of each method. A method with other parameters would fail in every task, long after submission.
_CALLED: Final[dict[ComponentKind, dict[str, tuple[str, ...]]]] = {
    ComponentKind.SPOUT: _SPOUT_CALLED,
    ComponentKind.BATCH_SPOUT: {
        "open": ("conf", "context", "collector"),
        "next_batch": (),
        "ack_batch": ("message_ids",),
        "fail_batch": ("message_ids",),
        "activate": (),
        "deactivate": (),
        "close": (),
        "exhausted": (),
    },
    ComponentKind.NATIVE_SPOUT: {
        "read": ("spark",),
        "columns": ("rows",),
        "tuple_of": ("row",),
        **_SPOUT_CALLED,
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

#: Java's spellings of optional methods. A subclass that defines one gets an error: nothing would ever call it.
_JAVA_SPELLINGS: Final[dict[str, str]] = {
    "declareOutputFields": "declare_output_fields",
    "getComponentConfiguration": "get_component_configuration",
    "onTickTuple": "on_tick_tuple",
}


#: The same for methods of another kind of component.
_OTHER_KINDS: Final[dict[ComponentKind, dict[str, str]]] = {
    ComponentKind.BATCH_SPOUT: {"next_tuple": "next_batch", "ack": "ack_batch", "fail": "fail_batch"},
}


def label(name: str, is_spout: bool) -> str:
    """Returns the name of a component in messages.

    Example:
        >>> label("lines", is_spout=True)
        'spout "lines"'
    """
    return f'{"spout" if is_spout else "bolt"} "{name}"'


def component_kind(component: object, name: str, is_spout: bool) -> ComponentKind:
    """Returns the kind of an object that was passed to `set_spout` or `set_bolt`.

    Args:
        component: the object.
        name: its future id.
        is_spout: whether it was passed to `set_spout`.

    Raises:
        InvalidTopologyError: that method doesn't accept it, or its methods have the wrong signature.
    """
    problem = next(_problems(component, is_spout), None)
    if problem is not None:
        raise InvalidTopologyError(f"{label(name, is_spout)}: {problem}", component=name)
    return next(kind for kind, base in _BASES.items() if isinstance(component, base))


def _problems(component: object, is_spout: bool) -> Iterator[str]:
    if isinstance(component, type):
        yield f"needs an instance, not the class {component.__qualname__}: did you forget the parentheses?"
    name = type(component).__qualname__
    matching = [kind for kind, base in _BASES.items() if isinstance(component, base)]
    bases = [_BASES[kind].__name__ for kind in matching]
    if not matching:
        wanted = "BaseRichSpout or BatchSpout" if is_spout else "BaseRichBolt, BaseBasicBolt or BatchBolt"
        yield f"must be an instance of a subclass of {wanted}, not {kind_of(component)}"
    if len(matching) > 1:
        yield f"{name} inherits from {' and '.join(bases)}; it can be only one of them"
    for kind in matching:
        if is_spout and not kind.is_spout:
            yield f"{name} is a bolt (a {bases[0]}); add it with set_bolt"
        if not is_spout and kind.is_spout:
            yield f"{name} is a spout; add it with set_spout"
        yield from _wrong_names(component, _JAVA_SPELLINGS | _OTHER_KINDS.get(kind, {}))
        for method, arguments in {**_CALLED_ON_ALL, **_CALLED[kind]}.items():
            yield from _method_problems(component, method, arguments)


def _wrong_names(component: object, names: dict[str, str]) -> Iterator[str]:
    for wrong, right in names.items():
        inherited = getattr(component, right, None)
        overridden = inherited is not None and inherited.__module__ != BaseRichBolt.__module__
        if hasattr(component, wrong) and not overridden:
            yield f"{type(component).__qualname__} defines {wrong}, which nothing calls; name it {right}"


def _method_problems(component: object, method: str, arguments: tuple[str, ...]) -> Iterator[str]:
    found = getattr(component, method)
    name = f"{type(component).__qualname__}.{method}"
    if not callable(found):
        yield f"{name} must be a method, not {kind_of(found)}"
    if inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found):
        yield f"{name} is async, and nothing would await it; make it a plain method"
    if inspect.isgeneratorfunction(found):
        yield (
            f"{name} is a generator (it has a yield), so its body would never run; emit through the collector instead"
        )
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        if inspect.ismethod(found):
            yield f"{name} takes no arguments, not even self"
        return  # a callable in C may have no signature: nothing to check
    try:
        signature.bind(*arguments)
    except TypeError:
        yield f"{name} is called with ({', '.join(arguments)}), but takes {signature}"
