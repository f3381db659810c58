"""Which objects can't hold state: the objects that the proof of statelessness accepts.

The lists name what is known to be harmless. Everything else counts as state.
"""

from __future__ import annotations

import builtins
import enum
import functools
import inspect
import sys
import types
from abc import ABCMeta
from collections.abc import Iterable
from typing import Any

from storm_on_spark.api.immutable import IMMUTABLE_OBJECTS
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import GlobalStreamId

_IMMUTABLE = IMMUTABLE_OBJECTS | {Fields, GlobalStreamId}
"""Exact types: a subclass may have attributes."""

_IMMUTABLE_BY_NAME = frozenset(("pyarrow.lib.Schema", "pyarrow.lib.Field", "pyarrow.lib.DataType"))
"""Types of packages that may not be there."""

_CALLABLE_BY_NAME = frozenset(("cython_function_or_method", "_ArrayFunctionDispatcher", "ufunc"))
"""Function types of compiled packages (pyarrow, numpy)."""

_READABLE = (dict, list, set, frozenset, tuple)
"""Containers that are harmless as long as they are only read and hold nothing mutable."""

READING_METHODS = frozenset(
    (
        "copy",
        "count",
        "difference",
        "get",
        "index",
        "intersection",
        "isdisjoint",
        "issubset",
        "issuperset",
        "items",
        "keys",
        "symmetric_difference",
        "union",
        "values",
    )
)
"""Methods of those containers that change nothing."""

_STATEFUL_BUILTINS = frozenset(
    ("__import__", "compile", "delattr", "eval", "exec", "getattr", "globals", "locals", "setattr", "vars")
)
"""Builtins that can get at attributes and globals without naming them in the bytecode."""

_DESCRIPTORS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    staticmethod,
    classmethod,
    property,
    functools.cached_property,
    type,
)
"""What a class may have among its attributes without having state itself."""


def is_immutable(value: object) -> bool:
    """Returns whether nothing in `value` can ever change.

    Example:
        >>> is_immutable(("a", 1, frozenset([None]))), is_immutable(("a", []))
        (True, False)
    """
    kind = type(value)
    if kind in _IMMUTABLE or f"{kind.__module__}.{kind.__qualname__}" in _IMMUTABLE_BY_NAME:
        return True
    if kind in (tuple, frozenset):
        assert isinstance(value, (tuple, frozenset))
        return all(is_immutable(item) for item in value)
    if isinstance(value, enum.Enum):
        # Members have their class among their attributes.
        return all(is_immutable(item) for name, item in vars(value).items() if name != "__objclass__")
    return False


def is_readable(value: object) -> bool:
    """Returns whether `value` is a container that is harmless as long as it is only read.

    Example:
        >>> is_readable({"a": 1}), is_readable({"a": []}), is_readable(__import__("collections").Counter())
        (True, False, False)
    """
    if type(value) is dict:
        return _all_immutable(value) and _all_immutable(value.values())
    return type(value) in _READABLE and isinstance(value, Iterable) and _all_immutable(value)


def is_code(value: object, like: str = "") -> bool:
    """Returns whether `value` is something to call that holds no state itself, as far as can be seen.

    Bound methods of objects are not: they are the object.

    Args:
        value: any object.
        like: see `is_library`.

    Example:
        >>> import json
        >>> is_code(json.dumps), is_code(len), is_code([].append), is_code(setattr)
        (True, True, False, False)
    """
    if isinstance(value, types.FunctionType):
        # Libraries hang descriptions on their functions.
        return is_library(value.__module__, like) or all(
            name == "__wrapped__" or is_immutable(item) for name, item in vars(value).items()
        )
    if isinstance(value, types.BuiltinFunctionType):
        if value.__self__ is builtins:
            return value.__name__ not in _STATEFUL_BUILTINS
        return value.__self__ is None or isinstance(value.__self__, (types.ModuleType, type))
    if isinstance(value, types.MethodType):
        return False
    if isinstance(value, type):
        return is_clean_class(value, like)
    if isinstance(value, (types.MethodDescriptorType, types.ClassMethodDescriptorType)):
        return True
    return type(value).__name__ in _CALLABLE_BY_NAME


def is_clean_class(cls: type, like: str = "") -> bool:
    """Returns whether no attribute of a class or its bases is mutable.

    Args:
        cls: the class; those of libraries are taken to be clean.
        like: see `is_library`.

    Example:
        >>> class Stats:
        ...     counts = {}
        >>> is_clean_class(Stats, like=__name__), is_clean_class(ValueError)
        (False, True)
    """
    return all(
        _is_special(base, name)
        or isinstance(member, _DESCRIPTORS)
        or type(member).__name__ == "_tuplegetter"  # a field of a named tuple
        or is_immutable(member)
        for base in cls.__mro__
        if not is_library(base.__module__, like)
        for name, member in vars(base).items()
    )


def is_library(module: str | None, like: str = "") -> bool:
    """Returns whether a module is the standard library's, an installed package's or this one's.

    Args:
        module: its name.
        like: the name of a module; what belongs to the same package as that one is not a library.

    Example:
        >>> is_library("json"), is_library("__main__")
        (True, False)
    """
    package = (module or "__main__").partition(".")[0]
    if package in ("__main__", like.partition(".")[0]):
        return False
    if package in sys.stdlib_module_names or package == _OWN_PACKAGE:
        return True
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is not None and ("site-packages" in file or "dist-packages" in file)


_OWN_PACKAGE = __name__.partition(".")[0]


def static_attribute(owner: object, name: str) -> Any:
    """Returns the attribute `owner.name` of a module, a class or a function, without running any code.

    Raises:
        AttributeError: it can't be found without running code.
    """
    if isinstance(owner, types.ModuleType):
        try:
            return vars(owner)[name]
        except KeyError:
            # A submodule that was imported, or whatever a module's own __getattr__ makes.
            if (submodule := sys.modules.get(f"{owner.__name__}.{name}")) is not None:
                return submodule
            raise AttributeError(name) from None
    if isinstance(owner, enum.EnumMeta) and name in owner.__members__:
        return owner.__members__[name]
    return inspect.getattr_static(owner, name)


def has_plain_metaclass(cls: type) -> bool:
    """Returns whether reading attributes of a class runs no code of its metaclass."""
    return type(cls) in (type, ABCMeta, enum.EnumMeta) or type(cls).__module__ == "typing"


def a_kind_of(value: object) -> str:
    """Returns what `value` is, for a sentence.

    Example:
        >>> a_kind_of({}), a_kind_of([]), a_kind_of(json := __import__("array").array("b"))
        ('a dict', 'a list', 'an array')
    """
    name = type(value).__qualname__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _all_immutable(values: Iterable[object]) -> bool:
    return all(is_immutable(value) for value in values)


def _is_special(cls: type, name: str) -> bool:
    """Whether an attribute of a class is the doing of Python, abc, enum or namedtuple."""
    special = name.startswith("__") and name.endswith("__")
    of_enum = isinstance(cls, enum.EnumMeta) and name.startswith("_") and name.endswith("_")
    return special or of_enum or name in ("_abc_impl", "_field_defaults")
