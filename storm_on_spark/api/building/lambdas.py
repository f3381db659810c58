"""Functions as spouts and bolts, as in Storm's `LambdaSpout` and `LambdaBiConsumerBolt`.

`set_spout` and `set_bolt` make these components from functions. A function has no attributes to save as state, so a
function that visibly keeps state is refused: state needs a class.
"""

from __future__ import annotations

import dis
import enum
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, MethodDescriptorType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.component import BaseBasicBolt, BaseRichSpout
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.immutable import IMMUTABLE_OBJECTS
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.text.wording import kind_of

if TYPE_CHECKING:
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import BasicOutputCollector, SpoutOutputCollector
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.api.tuple import Tuple

SpoutFunction = Callable[[], Any]
"""Returns the value of the next tuple, or a list or tuple with one value per field; `None` if there is no tuple now."""
BoltFunction = Callable[["Tuple"], object] | Callable[["Tuple", "BasicOutputCollector"], object]
"""Called with each tuple, and with the collector if it takes two arguments; its result is ignored."""

SPOUT_FIELDS: Final = Fields("lambda")
"""The default field of a spout made from a function, as in Storm."""

_IMMUTABLE: Final = IMMUTABLE_OBJECTS | {Fields, MethodDescriptorType}
"""Exact types of values that a function may capture, also inside tuples and frozen sets."""
_STORES: Final = frozenset(("STORE_DEREF", "DELETE_DEREF", "STORE_GLOBAL", "DELETE_GLOBAL"))


class _NoState:
    """The state of a component made from a function: nothing."""


class LambdaSpout(BaseRichSpout):
    """A spout that `set_spout` makes from a function. Its tuples have no message ids, so they are not tracked.

    Args:
        function: called whenever the spout may emit.
        fields: the fields of its stream `default`.
    """

    def __init__(self, function: SpoutFunction, fields: Fields) -> None:
        self.function = function
        self.fields = fields
        self._single = len(fields) == 1

    @property
    def state_holder(self) -> _NoState:
        """The object whose attributes are saved."""
        return _NoState()

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Keeps the collector."""
        self._collector = collector

    def next_tuple(self) -> None:
        """Emits what the function returns."""
        value = self.function()
        if value is not None:
            self._collector.emit([value] if self._single else value)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the fields."""
        declarer.declare(self.fields)


class LambdaBolt(BaseBasicBolt):
    """A bolt that `set_bolt` makes from a function. It anchors and acks automatically, like every `BaseBasicBolt`.

    Args:
        function: called with each tuple, and with the collector if it takes two arguments.
        fields: the fields of its stream `default`; empty if it emits nothing.
    """

    def __init__(self, function: BoltFunction, fields: Fields) -> None:
        self.function: Callable[..., object] = function
        self.fields = fields
        self.takes_collector = _takes(function, 2)

    @property
    def state_holder(self) -> _NoState:
        """The object whose attributes are saved."""
        return _NoState()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Calls the function."""
        if self.takes_collector:
            self.function(tup, collector)
        else:
            self.function(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the fields, if there are any."""
        if len(self.fields):
            declarer.declare(self.fields)


def spout_of(function: FunctionType, fields: Fields | str | Iterable[str] | None) -> LambdaSpout:
    """Returns a function as a spout.

    Raises:
        InvalidTopologyError: it takes arguments, it keeps state, or the fields are invalid.
    """
    _check(function, (0,), "nothing")
    declared = SPOUT_FIELDS if fields is None else Fields.of(fields)
    if not len(declared):
        raise InvalidTopologyError("a spout made of a function needs at least one field")
    return LambdaSpout(function, declared)


def bolt_of(function: FunctionType, fields: Fields | str | Iterable[str] | None) -> LambdaBolt:
    """Returns a function as a bolt.

    Raises:
        InvalidTopologyError: it can't be called with a tuple, it keeps state, or the fields are invalid.
    """
    _check(function, (2, 1), "(tup, collector) or (tup)")
    return LambdaBolt(function, Fields.of(fields or ()))


def _check(function: FunctionType, counts: tuple[int, ...], called_with: str) -> None:
    name = f"the function {function.__qualname__}"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidTopologyError(f"{name} is async, and nothing would await it; make it a plain function")
    if inspect.isgeneratorfunction(function):
        raise InvalidTopologyError(f"{name} is a generator (it has a yield), so its body would never run")
    if not any(_takes(function, count) for count in counts):
        raise InvalidTopologyError(f"{name} is called with {called_with}, but takes {inspect.signature(function)}")
    for what in _kept(function, set()):
        raise InvalidTopologyError(
            f"{name} {what}, which would not survive a crash or a move to another worker; write a class, "
            "whose attributes do"
        )


def _takes(function: Callable[..., object], count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    return True


def _kept(function: FunctionType, seen: set[FunctionType]) -> Iterator[str]:
    """Yields what a function keeps between calls, as far as inspection shows."""
    if function in seen:
        return
    seen.add(function)
    for name, default in _defaults(function):
        yield from _kept_by(default, f"keeps the default argument {name}", seen)
    free = function.__code__.co_freevars
    for name in _stored(function.__code__, frozenset(free)):
        yield f"assigns {name}, a variable outside of it"
    for name, cell in zip(free, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:
            yield f"captures {name}, which has no value yet"
            continue
        yield from _kept_by(value, f"captures {name}", seen)


def _kept_by(value: object, how: str, seen: set[FunctionType]) -> Iterator[str]:
    if isinstance(value, FunctionType):
        yield from _kept(value, seen)
    elif not (isinstance(value, (ModuleType, type)) or _is_immutable(value)):
        yield f"{how}, {kind_of(value)}"


def _is_immutable(value: object) -> bool:
    if isinstance(value, (tuple, frozenset)) and type(value) in (tuple, frozenset):
        return all(map(_is_immutable, value))
    if isinstance(value, BuiltinFunctionType):
        # A method of an object is that object.
        return value.__self__ is None or isinstance(value.__self__, ModuleType)
    if isinstance(value, enum.Enum):
        return _is_immutable(value.value)
    return type(value) in _IMMUTABLE


def _defaults(function: FunctionType) -> Iterator[tuple[str, object]]:
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            yield name, parameter.default


def _stored(code: CodeType, free: frozenset[str]) -> Iterator[str]:
    """Yields the variables of enclosing functions and of the module that `code` assigns."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in _STORES:
            name = str(instruction.argval)
            if instruction.opname.endswith("GLOBAL") or name in free:
                yield name
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _stored(constant, free & frozenset(constant.co_freevars))
