"""Checks of the functions that users pass to operations, and the place of the user's call."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import BuiltinMethodType, CodeType, FunctionType
from typing import Any, Final

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.text.wording import kind_of
from storm_on_spark.streams.operations.aggregators import CombinerAggregator

_OURS: Final = __name__.partition(".")[0] + "."
_EXAMPLES: Final = _OURS + "examples"
_STORES: Final = frozenset(("STORE_DEREF", "DELETE_DEREF", "STORE_GLOBAL", "DELETE_GLOBAL"))
_INSTEAD: Final = (
    "keep it with update_state_by_key or an aggregation, or send values to a bolt of your own with to(bolt)"
)
_CONTAINERS: Final = (list, dict, set, bytearray)
_CHANGES: Final = frozenset(
    [
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "add",
        "discard",
        "update",
        "setdefault",
        "popitem",
        "difference_update",
        "intersection_update",
        "symmetric_difference_update",
        "subtract",
    ]
)


def caller() -> str:
    """Returns file and line of the user's call, for messages."""
    frame = inspect.currentframe()
    assert frame is not None
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(_OURS) or module.startswith(_EXAMPLES):
            break
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def checked(function: Any, arguments: int, operation: str, where: str, instead: str = _INSTEAD) -> Callable[..., Any]:
    """Returns a function that an operation may call.

    Args:
        function: given by the user.
        arguments: the number of arguments of its calls.
        operation: the operation's name.
        where: the place of the user's call.
        instead: for the message: what to do with data that must be kept.

    Raises:
        InvalidTopologyError: it is not a function, takes other arguments, or visibly keeps something between calls,
            which would be lost.
    """
    what = f"{operation} ({where})"
    if not callable(function):
        raise InvalidTopologyError(f"{what} takes a function, not {kind_of(function)}")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidTopologyError(f"{what}: the function is async, and nothing would await it")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        pass  # functions of C without a signature
    else:
        try:
            signature.bind(*range(arguments))
        except TypeError:
            count = "one argument" if arguments == 1 else f"{arguments} arguments"
            raise InvalidTopologyError(f"{what}: the function is called with {count}, but takes {signature}") from None
    for kept in _kept(function):
        raise InvalidTopologyError(
            f"{what}: the function {kept}. Every task has a copy of it, and what it keeps is lost; {instead}"
        )
    return function  # type: ignore[no-any-return]


def aggregator_of(initial: Any, accumulate: Any, combine: Any, name: str) -> Any:
    """Returns an aggregator: the given one, or one made from an initial value and functions.

    Raises:
        InvalidTopologyError: the arguments are neither.
    """
    where = caller()
    if accumulate is None:
        methods = ("init", "apply")
        if not isinstance(initial, type) and all(callable(getattr(initial, method, None)) for method in methods):
            return initial
        raise InvalidTopologyError(
            f"{name} ({where}) takes a CombinerAggregator, or an initial value and a function of two, "
            f"not {kind_of(initial)}"
        )
    if combine is not None:
        checked(combine, 2, name, where)
    return CombinerAggregator.of(initial, checked(accumulate, 2, name, where), combine)


def checked_parallelism(parallelism: object, where: str) -> None:
    """Checks a number of tasks.

    Raises:
        InvalidTopologyError: it is not one.
    """
    if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
        raise InvalidTopologyError(f"{where}: the parallelism must be an int of at least 1, not {kind_of(parallelism)}")


def is_expression(given: object) -> bool:
    """Returns whether something is a `pyarrow.compute.Expression`, without importing pyarrow."""
    found = sys.modules.get("pyarrow.compute")
    return found is not None and isinstance(given, found.Expression)


def _kept(function: Any) -> Iterator[str]:
    """Yields the outer variables that a function visibly changes."""
    if isinstance(function, BuiltinMethodType):
        if isinstance(function.__self__, _CONTAINERS) and function.__name__ in _CHANGES:
            yield f"changes {kind_of(function.__self__)}"
    elif isinstance(function, FunctionType):
        try:
            closure = inspect.getclosurevars(function)
        except ValueError:
            return  # a variable of an enclosing function has no value yet
        outside = {**closure.globals, **closure.nonlocals}
        yield from _changes(function.__code__, frozenset(function.__code__.co_freevars), outside)


def _changes(code: CodeType, free: frozenset[str], outside: dict[str, Any]) -> Iterator[str]:
    loaded: Any = None
    for step in dis.get_instructions(code):
        name = str(step.argval)
        if step.opname in _STORES and (step.opname.endswith("GLOBAL") or name in free):
            yield f"assigns {name}, a variable outside of it"
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(loaded, _CONTAINERS) and name in _CHANGES:
            yield f"changes {kind_of(loaded)} outside of it ({name})"
        if step.opname in ("LOAD_DEREF", "LOAD_GLOBAL"):
            loaded = outside.get(name)
        elif step.opname not in ("CACHE", "PUSH_NULL", "NOP"):
            loaded = None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _changes(constant, free & frozenset(constant.co_freevars), outside)
