"""Python bytecode, reduced to what an analysis of names and attributes needs.

Bytecode rather than source, since it is what runs and is always there: a notebook, `exec` or a zipped program
may have no source, and a file may have changed since it was imported. Bytecode differs between Python
versions; whatever depends on that is in this module. A load, store or delete that the table doesn't know
becomes `Action.UNKNOWN`: all else can neither introduce a name nor store one.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from types import CodeType


class Action(Enum):
    """What one step does, as far as the analysis needs to know."""

    LOAD_LOCAL = auto()
    LOAD_CELL = auto()
    """Loads a variable that a nested function shares with an outer one."""
    LOAD_CONST = auto()
    LOAD_GLOBAL = auto()
    ATTRIBUTE = auto()
    """Replaces the object on top of the stack by one of its attributes."""
    SUPER_ATTRIBUTE = auto()
    """The same through `super()` (Python 3.12 and later); consumes `super`, `__class__` and `self`."""
    STORE_LOCAL = auto()
    STORE_CELL = auto()
    STORE_GLOBAL = auto()
    STORE_ATTRIBUTE = auto()
    IMPORT = auto()
    CLOSURE = auto()
    """Passes a variable to a nested function that is being made."""
    CALL_NOTHING = auto()
    """A call without arguments."""
    CONTAINS = auto()
    ITERATE = auto()
    SUBSCRIPT = auto()
    """Reads `container[key]`."""
    UNKNOWN = auto()
    OTHER = auto()


@dataclass(frozen=True)
class Step:
    """One instruction."""

    action: Action
    name: str
    """The variable or attribute; the name of the instruction if there is none."""
    jumped_to: bool
    """Whether the step may follow another one than the step before it."""


_ACTIONS = {
    "LOAD_FAST": Action.LOAD_LOCAL,
    "LOAD_FAST_AND_CLEAR": Action.LOAD_LOCAL,
    "LOAD_FAST_BORROW": Action.LOAD_LOCAL,
    "LOAD_FAST_CHECK": Action.LOAD_LOCAL,
    "LOAD_DEREF": Action.LOAD_CELL,
    "LOAD_GLOBAL": Action.LOAD_GLOBAL,
    "LOAD_ATTR": Action.ATTRIBUTE,
    "LOAD_METHOD": Action.ATTRIBUTE,
    "LOAD_SUPER_ATTR": Action.SUPER_ATTRIBUTE,
    "LOAD_CLOSURE": Action.CLOSURE,
    "LOAD_CONST": Action.LOAD_CONST,
    "LOAD_SMALL_INT": Action.LOAD_CONST,
    "LOAD_ASSERTION_ERROR": Action.OTHER,
    "LOAD_COMMON_CONSTANT": Action.OTHER,
    "LOAD_SPECIAL": Action.OTHER,
    "STORE_FAST": Action.STORE_LOCAL,
    "STORE_FAST_MAYBE_NULL": Action.STORE_LOCAL,
    "DELETE_FAST": Action.STORE_LOCAL,
    "STORE_DEREF": Action.STORE_CELL,
    "DELETE_DEREF": Action.STORE_CELL,
    "STORE_GLOBAL": Action.STORE_GLOBAL,
    "DELETE_GLOBAL": Action.STORE_GLOBAL,
    "STORE_ATTR": Action.STORE_ATTRIBUTE,
    "DELETE_ATTR": Action.STORE_ATTRIBUTE,
    "STORE_SUBSCR": Action.OTHER,
    "STORE_SLICE": Action.OTHER,
    "DELETE_SUBSCR": Action.OTHER,
    "CONTAINS_OP": Action.CONTAINS,
    "GET_ITER": Action.ITERATE,
    "BINARY_SUBSCR": Action.SUBSCRIPT,
    "IMPORT_NAME": Action.IMPORT,
}

_PAIRS = {
    "LOAD_FAST_LOAD_FAST": (Action.LOAD_LOCAL, Action.LOAD_LOCAL),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": (Action.LOAD_LOCAL, Action.LOAD_LOCAL),
    "STORE_FAST_LOAD_FAST": (Action.STORE_LOCAL, Action.LOAD_LOCAL),
    "STORE_FAST_STORE_FAST": (Action.STORE_LOCAL, Action.STORE_LOCAL),
}
"""Instructions of Python 3.13 and later that do two things at once."""

_WITHOUT_EFFECT = frozenset(
    (
        "CACHE",
        "COPY_FREE_VARS",
        "EXTENDED_ARG",
        "GEN_START",
        "KW_NAMES",
        "MAKE_CELL",
        "NOP",
        "NOT_TAKEN",
        "PRECALL",
        "RESUME",
    )
)

_CALLS = frozenset(("CALL", "CALL_FUNCTION"))


def steps(code: CodeType) -> list[Step]:
    """Returns the steps of a code object, without those of the functions nested in it.

    Example:
        >>> def double(x):
        ...     return x.value * factor
        >>> [(step.action.name, step.name) for step in steps(double.__code__)][:3]
        [('LOAD_LOCAL', 'x'), ('ATTRIBUTE', 'value'), ('LOAD_GLOBAL', 'factor')]
    """
    found: list[Step] = []
    jumped_to = False
    shared = {*code.co_cellvars, *code.co_freevars}
    for instruction in dis.get_instructions(code):
        # A jump to an instruction without effect is one to the next that has some.
        jumped_to = jumped_to or instruction.is_jump_target
        if instruction.opname in _WITHOUT_EFFECT:
            continue
        for action, name in _read(instruction, shared):
            found.append(Step(action, name, jumped_to))
            jumped_to = False
    return found


def nested(code: CodeType) -> Iterator[CodeType]:
    """Yields the code of the functions, lambdas and comprehensions that `code` itself makes."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant


def _read(instruction: dis.Instruction, shared: set[str]) -> Iterator[tuple[Action, str]]:
    opname = instruction.opname
    if opname in _PAIRS:
        for action, name in zip(_PAIRS[opname], instruction.argval, strict=True):
            yield _unless_closure(action, name, shared), name
    elif opname in _CALLS and instruction.arg == 0:
        yield Action.CALL_NOTHING, opname
    elif opname == "BINARY_OP" and instruction.argrepr == "[]":
        # Since Python 3.14 a subscript is a binary operation.
        yield Action.SUBSCRIPT, opname
    elif opname in _ACTIONS:
        name = opname if instruction.argval is None else str(instruction.argval)
        yield _unless_closure(_ACTIONS[opname], name, shared), name
    else:
        of_names = opname.startswith(("LOAD_", "STORE_", "DELETE_"))
        yield (Action.UNKNOWN if of_names else Action.OTHER), opname


def _unless_closure(action: Action, name: str, shared: set[str]) -> Action:
    # Since Python 3.13 a variable is passed to a nested function by an ordinary load; any other use is
    # LOAD_DEREF.
    return Action.CLOSURE if action is Action.LOAD_LOCAL and name in shared else action
