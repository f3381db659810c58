"""Objects of a Flux file: classes found by name, made, and configured."""

from __future__ import annotations

import contextlib
import enum
import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from storm_on_spark.api.building import java_classes
from storm_on_spark.api.errors import StormError
from storm_on_spark.api.text.wording import did_you_mean, quoted
from storm_on_spark.flux.definitions import ObjectDef, PropertyDef
from storm_on_spark.flux.nodes import Node
from storm_on_spark.launch.loader import place_of, search_first

_NAME = re.compile(r"[^\W\d]\w*([.$][^\W\d]\w*)*")
_DASH = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Objects:
    """Makes the objects of one file.

    Args:
        folder: searched first for classes.
        components: the definitions that `ref` and `reflist` may name. Each is made once, when it is first needed.
    """

    def __init__(self, folder: Path, components: Mapping[str, ObjectDef]) -> None:
        self._folder = folder
        self._components = components
        self._made: dict[str, Any] = {}
        self._making: list[str] = []

    def make_components(self) -> None:
        """Makes all components, including unused ones.

        Raises:
            FluxError: a component can't be made.
        """
        for name, component in self._components.items():
            self._component(name, component.node)

    def make(self, definition: ObjectDef) -> Any:
        """Makes an object, sets its properties, and calls its config methods.

        Raises:
            FluxError: the class does not exist, arguments don't fit, or its code raised an error.
            StormError: raised by its code.
        """
        cls = find_class(definition.class_name, self._folder)
        if definition.factory is not None:
            factory = self._method(cls, definition.factory, f"class {cls.__qualname__}")
            made = self._called(factory, definition.factory_args, definition.factory)
        else:
            made = self._called(cls, definition.constructor_args or (), definition.class_name)
        for item in definition.properties:
            self._set(made, item)
        for method in definition.config_methods:
            name = method.node.value["name"]
            self._called(self._method(made, name, _class_of(made)), method.args, name)
        return made

    def call(self, made: Any, name: str, place: Node, argument: Mapping[str, Any]) -> Any:
        """Calls a method with one argument, or without arguments if it takes none.

        Raises:
            FluxError: there is no such method, or it raised an error.
        """
        spelled = Node(name, place.place)
        method = self._method(made, spelled, _class_of(made))
        with contextlib.suppress(TypeError, ValueError):
            if not inspect.signature(method).parameters:
                return self._guarded(method, (), place)
        return self._guarded(method, (dict(argument),), place)

    def value(self, node: Node) -> Any:
        """Returns a value with its references resolved.

        Raises:
            FluxError: there is no such component, or components refer to each other in a circle.
        """
        if isinstance(node.value, list):
            return [self.value(item) for item in node.value]
        if not isinstance(node.value, dict):
            return node.value
        if list(node.value) == ["ref"]:
            return self._referred(node.value["ref"])
        if list(node.value) == ["reflist"]:
            names = node.value["reflist"]
            if not isinstance(names.value, list):
                raise names.error("reflist takes a list of the ids of components")
            return [self._referred(name) for name in names.value]
        return {key: self.value(item) for key, item in node.value.items()}

    def _referred(self, node: Node) -> Any:
        if not isinstance(node.value, str):
            raise node.error("a reference is the id of a component, a string")
        return self._component(node.value, node)

    def _component(self, name: str, where: Node) -> Any:
        if name in self._made:
            return self._made[name]
        if name not in self._components:
            raise where.error(
                f'there is no component "{name}"; there are {quoted(self._components)}.'
                f"{did_you_mean(name, self._components)}".rstrip(".")
            )
        if name in self._making:
            circle = [*self._making[self._making.index(name) :], name]
            raise where.error(f"components need each other in a cycle: {' -> '.join(circle)}")
        self._making.append(name)
        try:
            self._made[name] = self.make(self._components[name])
        finally:
            self._making.pop()
        return self._made[name]

    def _method(self, owner: Any, node: Node, what: str) -> Callable[..., Any]:
        name = str(node.value)
        for spelling in (name, snake(name)):
            found = None if spelling.startswith("_") else getattr(owner, spelling, None)
            if callable(found):
                return typing.cast("Callable[..., Any]", found)
        methods = [one for one in dir(owner) if not one.startswith("_") and callable(getattr(owner, one, None))]
        raise node.error(
            f'{what} has no method "{name}"; there are {quoted(methods)}.{did_you_mean(name, methods)}'.rstrip(".")
        )

    def _set(self, made: Any, item: PropertyDef) -> None:
        where = item.node.value["name"]
        for spelling in (f"set{item.name[:1].upper()}{item.name[1:]}", f"set_{snake(item.name)}"):
            setter = getattr(made, spelling, None)
            if callable(setter):
                self._called(setter, (item.value,), where)
                return
        value = self.value(item.value)
        for spelling in (item.name, snake(item.name)):
            if not spelling.startswith("_") and _has_attribute(made, spelling):
                self._guarded(setattr, (made, spelling, value), where)
                return
        names = [name for name in _attributes(made) if not name.startswith("_")]
        raise where.error(
            f'{_class_of(made)} has neither a method set_{snake(item.name)} nor an attribute "{item.name}"; there are '
            f"{quoted(names)}.{did_you_mean(item.name, names)}".rstrip(".")
        )

    def _called(self, function: Callable[..., Any], args: Sequence[Node], where: Node) -> Any:
        values = [self.value(node) for node in args]
        what = getattr(function, "__qualname__", str(where.value))
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return self._guarded(function, values, where)
        try:
            bound = signature.bind(*values)
        except TypeError as error:
            raise where.error(f"{what}{signature} does not take these {len(values)} arguments: {error}") from None
        hints = _hints(function)
        positional = iter(zip(args, values, strict=True))
        fitted: list[Any] = []
        for name in bound.arguments:
            kind = signature.parameters[name].kind
            taken = positional if kind is inspect.Parameter.VAR_POSITIONAL else [next(positional)]
            fitted += [_fitted(value, hints.get(name), node) for node, value in taken]
        return self._guarded(function, fitted, where)

    def _guarded(self, function: Callable[..., Any], args: Sequence[Any], where: Node) -> Any:
        try:
            return function(*args)
        except StormError as error:
            raise where.error(str(error)) from error
        except (Exception, SystemExit) as error:
            raise where.error(place_of(error)) from error


def find_class(node: Node, folder: Path) -> type[Any]:
    """Imports the class that `className` names.

    Args:
        node: `package.module.Class`, or the name of a Java class with a counterpart here.
        folder: first on the module search path.

    Raises:
        FluxError: there is no such class, or importing its module failed.
    """
    name = str(node.value)
    known = java_classes.CLASSES.get(name, name)
    if known is name and (sentence := java_classes.refusal(name)) is not None:
        raise node.error(sentence)
    if not _NAME.fullmatch(known) or "." not in known:
        raise node.error(f'a class is named as package.module.Class, not "{name[:100]}"')
    search_first(folder)
    parts = known.replace("$", ".").split(".")
    found, rest = _imported(parts, node)
    for position, part in enumerate(rest):
        if not hasattr(found, part):
            owner = ".".join(parts[: len(parts) - len(rest) + position])
            there = [key for key, value in vars(found).items() if isinstance(value, type) and not key.startswith("_")]
            raise node.error(f"{owner} has no class {part}.{did_you_mean(part, there)}".rstrip("."))
        found = getattr(found, part)
    if not isinstance(found, type):
        raise node.error(f"{name} is not a class")
    return found


def snake(name: str) -> str:
    """Returns a Java name in Python's spelling.

    >>> snake("withFieldDelimiter"), snake("HTTPPort"), snake("batch_size")
    ('with_field_delimiter', 'http_port', 'batch_size')
    """
    return _DASH.sub("_", name).lower()


def _imported(parts: list[str], node: Node) -> tuple[Any, list[str]]:
    """Returns the longest prefix that is a module, imported, and what follows it."""
    importlib.invalidate_caches()
    for length in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:length])
        try:
            return importlib.import_module(name), parts[length:]
        except ModuleNotFoundError as error:
            if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
                raise node.error(place_of(error)) from error
        except (Exception, SystemExit) as error:
            raise node.error(place_of(error)) from error
    raise node.error(
        f"there is no module {'.'.join(parts[:-1])}; modules are looked for beside the topology's file and among the "
        "installed packages. A class of Java can't run here"
    )


def _class_of(made: Any) -> str:
    return f"class {type(made).__qualname__}"


def _attributes(made: Any) -> list[str]:
    return [name for name in dir(made) if not callable(getattr(made, name, None))]


def _has_attribute(made: Any, name: str) -> bool:
    if not hasattr(made, name):
        # Declared in the class without a value, as dataclasses and __slots__ do.
        return any(name in getattr(cls, "__annotations__", {}) for cls in type(made).__mro__)
    return not inspect.isroutine(getattr(made, name))


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = function.__init__ if isinstance(function, type) else function  # type: ignore[misc] # of a class
    try:
        return typing.get_type_hints(target)
    except Exception:  # ignore an annotation that can't be evaluated
        return {}


def _fitted(value: Any, hint: Any, node: Node) -> Any:
    """Converts a value to the type of the parameter's annotation: a name to a member of an enum, an int to a float."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    if isinstance(value, str) and str not in options:
        for option in options:
            if isinstance(option, type) and issubclass(option, enum.Enum):
                if value not in option.__members__:
                    raise node.error(
                        f'{option.__qualname__} has no member "{value}"; there are {quoted(option.__members__)}.'
                        f"{did_you_mean(value, option.__members__)}".rstrip(".")
                    )
                return option[value]
    if isinstance(value, int) and not isinstance(value, bool) and float in options and int not in options:
        return float(value)
    if isinstance(value, list) and any(typing.get_origin(option) is tuple or option is tuple for option in options):
        return tuple(value)
    return value
