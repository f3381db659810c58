"""The proof that a bolt holds no state.

It proves that no code of the bolt's class can keep anything for the next tuple: not in an
attribute of the instance or the class, not in a global, not in a variable of an enclosing function, not in a
default argument, and not by handing itself to code that might. The bytecode of every method is read step by
step:

- `self` may be used only to read an attribute right away: `self.x`. An alias of it is never made, so nothing
  else can be stored to or handed on in its place.
- `self.x` may be a method (which is read as well), the collector, or immutable.
- A global may be code (functions of user code are read as well), immutable, or a container of immutable
  values that is read right away: `word in STOP_WORDS`.
- Attributes are stored nowhere, except that `prepare` may keep its own parameters.

So what a local variable holds was made since the method was called, came with the tuple, or is immutable, and
local variables need no further look. What methods of other objects and functions of other packages do when
they are called can't be seen; state in globals that only they use is the limit of this proof.
"""

from __future__ import annotations

import builtins
import dataclasses
import itertools
from abc import ABC
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType, MemberDescriptorType, ModuleType
from typing import Generic, NoReturn, Protocol

from storm_on_spark.api.adapted import Adapted, component_class
from storm_on_spark.api.building.lambdas import LambdaBolt
from storm_on_spark.api.component import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseTickTupleAwareRichBolt,
    BatchBolt,
)
from storm_on_spark.plan.proof.bytecode import Action, Step, nested, steps
from storm_on_spark.plan.proof.values import (
    READING_METHODS,
    a_kind_of,
    has_plain_metaclass,
    is_code,
    is_immutable,
    is_library,
    is_readable,
    static_attribute,
)

_API_BASES = (BaseRichBolt, BaseBasicBolt, BatchBolt, BaseTickTupleAwareRichBolt)
_API_CLASSES = frozenset(cls for base in _API_BASES for cls in base.__mro__)
_CALLED_BEFORE_SUBMISSION = frozenset(("declare_output_fields", "get_component_configuration"))
"""What these store is there when the bolt is looked at."""

_OWN_ATTRIBUTE_ACCESS = frozenset(
    (
        "__getattr__",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
        "__getstate__",
        "__setstate__",
        "__reduce__",
        "__reduce_ex__",
        "__copy__",
        "__deepcopy__",
        "__del__",
    )
)
"""Special methods with which a class decides itself what its attributes are."""

_ARGUMENTS = (["conf", "context"], ["conf", "context", "collector"])
"""What `prepare` gets: that of a basic bolt, and that of others."""

_HARMLESS_USES = {
    "conf": frozenset[str](),
    "context": frozenset(
        (
            "this_task_id",
            "this_task_index",
            "this_component_id",
            "topology_name",
            "storm_id",
            "get_this_task_id",
            "get_this_task_index",
            "get_this_component_id",
            "get_storm_id",
            "component_id",
            "get_component_id",
            "component_tasks",
            "get_component_tasks",
        )
    ),
    "collector": frozenset(("emit", "emit_direct", "ack", "fail", "reset_timeout", "report_error")),
}
"""What may be called on a parameter that `prepare` kept. A configuration's values may be mutable."""

_SAFE_SPECIAL_ATTRIBUTES = frozenset(("__name__", "__qualname__", "__doc__"))

_STATEFUL_ATTRIBUTES = frozenset(("set_task_data", "get_task_data", "f_globals", "f_locals", "f_builtins"))
"""Ways around attributes and globals."""

_COPIES = frozenset(("COPY", "DUP_TOP"))
_UNDEFINED = object()

_HEAP_TYPE = 1 << 9
"""The flag of a class that was made by a class statement (Py_TPFLAGS_HEAPTYPE)."""


class NotProved(Exception):  # noqa: N818 - not an error: most bolts with state end here
    """The bolt may hold state; the text says where."""


@dataclasses.dataclass(frozen=True)
class _Function:
    """A function to read."""

    function: FunctionType
    where: str
    receiver: str | None
    """The name of the parameter that is the bolt or its class; `None` for a function that gets neither."""
    on_class: bool = False
    is_prepare: bool = False


class Proof:
    """Tries to prove that one bolt is stateless.

    Args:
        bolt: the user's object, as it is at submission.
    """

    def __init__(self, bolt: object) -> None:
        adapted = getattr(bolt, "adapted", None)
        self._adapted = adapted if isinstance(adapted, Adapted) else None
        self._class = component_class(bolt)
        #: Classes that are known not to store anything; every other base is read.
        self._harmless = _API_CLASSES if self._adapted is None else self._adapted.bases
        self._harmless |= {object, ABC, Generic, Protocol}
        #: Attributes that `prepare` fills with its parameters -> which of them.
        self.kept: dict[str, str] = {}
        self._attributes = {} if self._adapted else dict(_instance_attributes(bolt))
        #: The module of the user's code: what belongs to its package is read, and not taken for a library.
        self._home = getattr(bolt, "function", bolt).__module__ if self._class is LambdaBolt else self._class.__module__
        #: The methods that the runtime calls, or the other API.
        self._called = {
            name for cls in self._harmless - {object} for name, member in vars(cls).items() if callable(member)
        }
        self._unread: list[_Function] = []
        self._seen: set[tuple[FunctionType, str]] = set()

    def run(self) -> None:
        """Reads all code of the bolt.

        Raises:
            NotProved: it stores something, or may do so.
        """
        if self._adapted and self._adapted.state:
            raise NotProved(self._adapted.state)
        for name, value in self._attributes.items():
            if self._class is LambdaBolt and name == "function" and isinstance(value, FunctionType):
                self._add(_Function(value, value.__name__, None))
            elif not is_immutable(value):
                raise NotProved(f"self.{name} is {a_kind_of(value)}")
        if not has_plain_metaclass(self._class):
            raise NotProved(f"{self._class.__qualname__} has the metaclass {type(self._class).__qualname__}")
        for cls in self._class.__mro__:
            if cls not in self._harmless:
                self._open_class(cls)
        # What prepare keeps has to be known before it is met elsewhere.
        self._unread.sort(key=lambda function: not function.is_prepare)
        while self._unread:
            self._read(self._unread.pop(0))

    def _open_class(self, cls: type) -> None:
        if not cls.__flags__ & _HEAP_TYPE:
            raise NotProved(f"{self._class.__qualname__} inherits from {cls.__qualname__}")
        for name, member in vars(cls).items():
            frozen = name in ("__setattr__", "__delattr__") and _is_frozen_dataclass(cls)
            if name in _OWN_ATTRIBUTE_ACCESS and not frozen:
                raise NotProved(f"{cls.__qualname__} defines {name}")
            if self._adapted and name in ("__init__", "__new__"):
                # Called in the worker: what it stores isn't there yet.
                raise NotProved(f"{cls.__qualname__} defines {name}")
            if _is_special(name) or name in _CALLED_BEFORE_SUBMISSION:
                continue
            if not self._add_member(name, member) and name in self._called:
                raise NotProved(f"{name} is {a_kind_of(member)}, not a plain method")

    def _add_member(self, name: str, member: object) -> bool:
        """Puts the functions behind a member of the class on the list; returns whether there are any."""
        if isinstance(member, FunctionType):
            self._add_method(member, name)
        elif isinstance(member, classmethod) and isinstance(member.__func__, FunctionType):
            self._add_method(member.__func__, name, on_class=True)
        elif isinstance(member, staticmethod) and isinstance(member.__func__, FunctionType):
            self._add(_Function(member.__func__, name, None))
        elif isinstance(member, property):
            for accessor in (member.fget, member.fset, member.fdel):
                if isinstance(accessor, FunctionType):
                    self._add_method(accessor, name)
                elif accessor is not None:
                    raise NotProved(f"the property {name} is made of {a_kind_of(accessor)}")
        else:
            return False
        return True

    def _add_method(self, function: FunctionType, name: str, on_class: bool = False) -> None:
        code = function.__code__
        if not code.co_argcount:
            raise NotProved(f"{name} doesn't name the parameter that is the bolt")
        is_prepare = name == "prepare" and not on_class and not self._adapted
        self._add(_Function(function, name, code.co_varnames[0], on_class, is_prepare))

    def _add(self, function: _Function) -> None:
        # By name as well: a function may be prepare under one name and something else under another.
        key = function.function, function.where
        if key not in self._seen:
            self._seen.add(key)
            self._unread.append(function)

    def _read(self, function: _Function) -> None:
        plain = function.function
        for default in (*(plain.__defaults__ or ()), *(plain.__kwdefaults__ or {}).values()):
            if not is_immutable(default):
                self._use_code(default, f"{a_kind_of(default)} as a default argument", function.where)
        if vars(plain).keys() - {"__isabstractmethod__", "__wrapped__"}:
            raise NotProved(f"{function.where} carries attributes of its own")
        _Reading(self, function).read(plain.__code__, receiver_visible=True, inner=frozenset())

    def use_attribute(self, name: str, reading: Sequence[Step], function: _Function) -> None:
        """Checks the use of an attribute of the bolt (or its class); `reading` is what follows."""
        where = function.where
        classes = [cls for cls in self._class.__mro__ if cls not in self._harmless]
        members = [vars(cls)[name] for cls in classes if name in vars(cls)]
        # A descriptor in the class would decide what the attribute of the instance is.
        on_instance = not function.on_class and all(map(_is_no_descriptor, members))
        if on_instance and name in self.kept:
            kind = self.kept[name]
            following = reading[0]
            if following.action is Action.ATTRIBUTE and following.name in _HARMLESS_USES[kind]:
                return
            raise NotProved(f"{where} uses self.{name}, the {kind}, in a way that may store something")
        if on_instance and name in self._attributes:
            return
        if self._adapted and not members and name in self._adapted.attributes:
            methods = self._adapted.attributes[name]
            if methods is None or (reading[0].action is Action.ATTRIBUTE and reading[0].name in methods):
                return
            raise NotProved(f"{where} uses self.{name} in a way that may store something")
        inherited = [vars(cls)[name] for cls in self._class.__mro__ if cls in self._harmless and name in vars(cls)]
        if not members and not inherited:
            raise NotProved(f"{where} reads self.{name}, which is not there at submission")
        if self._adapted and not members and not (callable(inherited[0]) or is_immutable(inherited[0])):
            raise NotProved(f"{where} uses self.{name}, {a_kind_of(inherited[0])}")
        for member in members:
            if not self._add_member(name, member):
                self.use_value(member, f"the class attribute {name}", reading, where)

    def use_value(self, value: object, name: str, reading: Sequence[Step], where: str) -> None:
        """Checks the use of an object that outlives the call, such as a global; `reading` is what follows."""
        following = iter(reading)
        step = next(following)
        while step.action is Action.ATTRIBUTE and isinstance(value, (ModuleType, type, FunctionType)):
            if isinstance(value, type) and not has_plain_metaclass(value):
                raise NotProved(f"{where} uses {name}, which has a metaclass of its own")
            if step.name in _SAFE_SPECIAL_ATTRIBUTES:
                return
            name = f"{name}.{step.name}"
            try:
                value = static_attribute(value, step.name)
            except AttributeError:
                raise NotProved(f"{where} uses {name}, which can't be found") from None
            step = next(following)
        if is_immutable(value):
            return
        if is_readable(value) and _only_reads(step, next(following, step)):
            return
        self._use_code(value, f"{name}, {a_kind_of(value)}", where)

    def _use_code(self, value: object, description: str, where: str) -> None:
        if isinstance(value, staticmethod):
            value = value.__func__
        if isinstance(value, classmethod) and is_library(getattr(value.__func__, "__module__", None)):
            return
        if not is_code(value, self._home):
            raise NotProved(f"{where} uses {description}")
        if isinstance(value, FunctionType) and not is_library(value.__module__, like=self._home):
            self._add(_Function(value, f"{where} → {value.__name__}", None))


class _Reading:
    """Reads one function, with the functions nested in it."""

    def __init__(self, proof: Proof, function: _Function) -> None:
        self._proof = proof
        self._function = function
        self._where = function.where
        cells = zip(function.function.__code__.co_freevars, function.function.__closure__ or (), strict=True)
        self._cells = dict(cells)
        #: The local variables that are what the runtime gave to `prepare`.
        self._parameters = _parameters_of_prepare(function)

    def read(self, code: CodeType, receiver_visible: bool, inner: frozenset[str]) -> None:
        """Reads `code`.

        Args:
            code: of the function or of one nested in it.
            receiver_visible: whether the receiver's name means the receiver in it.
            inner: the variables of this call that nested functions share.
        """
        receiver = self._function.receiver if receiver_visible else None
        inner |= frozenset(code.co_cellvars)
        if code is not self._function.function.__code__:
            # A nested function has variables of its own, which may have the same names.
            self._parameters = {}
        # A few steps of nothing, so that looking ahead needs no care.
        program = [*steps(code), *[Step(Action.OTHER, "END", False)] * 4]
        # Stores first: they make the better reason.
        for at, step in enumerate(program):
            self._check_store(at, step, program, receiver, inner)
        for at, step in enumerate(program):
            self._check_load(at, step, program, receiver, inner)
        for child in nested(code):
            visible = receiver is not None and receiver in child.co_freevars
            self.read(child, visible, inner)

    def _check_store(
        self, at: int, step: Step, program: list[Step], receiver: str | None, inner: frozenset[str]
    ) -> None:
        if step.action is Action.STORE_ATTRIBUTE:
            self._check_attribute_store(at, program, receiver)
        elif step.action is Action.STORE_GLOBAL:
            self._fail(f"assigns the global {step.name}")
        elif step.action in (Action.STORE_LOCAL, Action.STORE_CELL) and step.name == receiver:
            self._fail(f"assigns {receiver}")
        elif step.action is Action.STORE_CELL and step.name not in inner:
            self._fail(f"assigns {step.name}, a variable of an enclosing function")

    def _check_attribute_store(self, at: int, program: list[Step], receiver: str | None) -> None:
        name = program[at].name
        before = program[at - 1] if at else program[-1]
        value = program[at - 2] if at > 1 else program[-1]
        on_receiver = receiver is not None and before.name == receiver
        # A jump between loading the parameter and storing it would mean that another value may be stored.
        straight = not before.jumped_to and not program[at].jumped_to
        if on_receiver and straight and value.action is Action.LOAD_LOCAL:
            kind = self._parameters.get(value.name)
            if kind is not None and self._proof.kept.setdefault(name, kind) == kind:
                return
        owner = "self." if on_receiver or self._is_duplicated(receiver, program) else "an attribute "
        self._fail(f"stores {owner}{name}")

    def _is_duplicated(self, receiver: str | None, program: list[Step]) -> bool:
        """Returns whether the receiver is loaded once and used twice, as in `self.x += 1`."""
        return receiver is not None and any(
            step.name == receiver and step.action in (Action.LOAD_LOCAL, Action.LOAD_CELL) and after.name in _COPIES
            for step, after in itertools.pairwise(program)
        )

    def _check_load(
        self, at: int, step: Step, program: list[Step], receiver: str | None, inner: frozenset[str]
    ) -> None:
        following = program[at + 1 :]
        match step.action:
            case Action.UNKNOWN:
                self._fail(f"uses {step.name}, which is not followed")
            case Action.IMPORT:
                self._fail(f"imports {step.name} while it runs, which is not followed")
            case Action.ATTRIBUTE | Action.SUPER_ATTRIBUTE:
                self._check_name(step.name)
            case Action.LOAD_LOCAL | Action.LOAD_CELL if step.name == receiver:
                self._check_receiver(following)
            case Action.LOAD_CELL if step.name not in inner:
                self._check_cell(step.name, following)
            case Action.LOAD_GLOBAL:
                self._check_global(step.name, following)
            case _:
                pass

    def _check_name(self, name: str) -> None:
        if name in _STATEFUL_ATTRIBUTES or (_is_special(name) and name not in _SAFE_SPECIAL_ATTRIBUTES):
            self._fail(f"uses {name}")

    def _check_receiver(self, following: list[Step]) -> None:
        first = following[0]
        if first.action in (Action.ATTRIBUTE, Action.SUPER_ATTRIBUTE):
            self._use_attribute(first.name, following[1:])
        elif first.action is not Action.STORE_ATTRIBUTE:
            self._fail(f"uses {self._function.receiver} other than by its attributes")

    def _use_attribute(self, name: str, following: list[Step]) -> None:
        if name == "prepare":
            # What the method of a base class keeps has to be what the runtime gave.
            handed_on = [
                self._parameters.get(step.name)
                for step in itertools.takewhile(lambda step: step.action is Action.LOAD_LOCAL, following)
            ]
            after = following[len(handed_on)]
            if handed_on not in _ARGUMENTS or after.action is not Action.OTHER or after.jumped_to:
                self._fail("calls prepare with arguments of its own")
        self._proof.use_attribute(name, following, self._function)

    def _check_cell(self, name: str, following: list[Step]) -> None:
        if name == "__class__" and following[1].action is Action.SUPER_ATTRIBUTE:
            return
        try:
            value = self._cells[name].cell_contents
        except (KeyError, ValueError):
            self._fail(f"uses {name}, a variable of an enclosing function that has no value")
        if not isinstance(value, (ModuleType, type, FunctionType)):
            self._fail(f"uses {name}, a variable of an enclosing function")
        self._proof.use_value(value, name, following, self._where)

    def _check_global(self, name: str, following: list[Step]) -> None:
        function = self._function.function
        known = function.__globals__
        value = known.get(name, getattr(builtins, name, _UNDEFINED))
        if value is _UNDEFINED:
            self._fail(f"uses {name}, which is not defined")
        if value is builtins.super:
            self._check_super(following)
            return
        label = f"the global {name}" if name in known else name
        self._proof.use_value(value, label, following, self._where)

    def _check_super(self, following: list[Step]) -> None:
        first, second, third = following[:3]
        if first.action is Action.CALL_NOTHING and second.action is Action.ATTRIBUTE:
            # Up to Python 3.11; since then the receiver is loaded, and checked with it.
            self._use_attribute(second.name, following[2:])
        elif first.name != "__class__" or third.action is not Action.SUPER_ATTRIBUTE:
            self._fail("uses super() other than to call a method")

    def _fail(self, what: str) -> NoReturn:
        raise NotProved(f"{self._where} {what}")


def _instance_attributes(instance: object) -> Iterator[tuple[str, object]]:
    yield from getattr(instance, "__dict__", {}).items()
    for cls in type(instance).__mro__:
        for name, member in vars(cls).items():
            if isinstance(member, MemberDescriptorType) and hasattr(instance, name):
                yield name, getattr(instance, name)


def _parameters_of_prepare(function: _Function) -> dict[str, str]:
    """Returns which local variables of `prepare` are which of its parameters; none for another method."""
    if not function.is_prepare:
        return {}
    code = function.function.__code__
    names = code.co_varnames[1 : code.co_argcount]
    stores = (Action.STORE_LOCAL, Action.STORE_CELL)
    assigned = {step.name for step in steps(code) if step.action in stores}
    return {name: kind for name, kind in zip(names, _ARGUMENTS[-1], strict=False) if name not in assigned}


def _is_no_descriptor(member: object) -> bool:
    return is_immutable(member) or isinstance(member, MemberDescriptorType)


def _only_reads(step: Step, following: Step) -> bool:
    """Returns whether a container on top of the stack is read by the next step or two, and gone then."""
    if step.action is Action.ATTRIBUTE:
        return step.name in READING_METHODS
    if step.action in (Action.LOAD_LOCAL, Action.LOAD_CONST):
        return following.action is Action.SUBSCRIPT
    return step.action in (Action.CONTAINS, Action.ITERATE)


def _is_frozen_dataclass(cls: type) -> bool:
    # A frozen dataclass can't define these methods itself, so they are those that refuse to store anything.
    parameters = vars(cls).get("__dataclass_params__")
    return parameters is not None and bool(parameters.frozen)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
