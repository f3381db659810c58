"""The parts of a stream: each module with its declaration; the modules inside a composed one replace it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from storm_on_spark.xd.dsl import Code, DslError, Job, Module, Stream
from storm_on_spark.xd.modules import ModuleDeclaration, ModuleType, OptionError
from storm_on_spark.xd.modules.declaration import Component
from storm_on_spark.xd.modules.local_registry import (
    MOST_LEVELS,
    AnyModule,
    ComposedModule,
    LocalRegistry,
    ModuleRegistryError,
    types_inside,
)

_MOST_PARTS: Final = 1_000


@dataclass(frozen=True)
class Part:
    """A module of a stream that is a component."""

    type: ModuleType
    label: str
    """Unique in the stream; `<label>.<label>` inside a composed module."""
    declaration: ModuleDeclaration
    options: Mapping[str, str]
    origin: Module = field(repr=False)
    """The module of the definition that it comes from, for errors."""
    prefix: str = ""
    """The prefix of an option's name in the definition, such as `filter.`."""
    inherited: frozenset[str] = frozenset()
    """Options whose values come from a composed module, and not from the definition."""

    def component(self, stream: str, definition: str) -> Component:
        """Returns the component.

        Args:
            stream: the stream's name.
            definition: its text, for errors.

        Raises:
            DslError: an option is unknown, missing, or has an invalid value.
        """
        try:
            return self.declaration.make(self.options, stream)
        except OptionError as error:
            raise self._positioned(error, definition) from error

    def values(self, whole: str, definition: str, later: Collection[str] = ()) -> dict[str, Any]:
        """Returns the typed options.

        Args:
            whole: the name of the stream or job.
            definition: its text, for errors.
            later: options that get their values later; their texts are not checked.

        Raises:
            DslError: an option is unknown or missing, or can't have its value.
        """
        given = {name: text for name, text in self.options.items() if name not in later}
        try:
            return self.declaration.values(given, whole, later)
        except OptionError as error:
            raise self._positioned(error, definition) from error

    def _positioned(self, error: OptionError, definition: str) -> DslError:
        origin, name = self.origin, f"{self.prefix}{error.option}"
        inside = f"{self.label}: " if self.prefix else ""
        given = [option for option, _ in origin.options]
        if name not in given:
            code = Code.BAD_VALUE if error.option in self.inherited else Code.MISSING_OPTION
            return DslError(code, definition, origin.position, f"{inside}{error.message}")
        number = given.index(name)
        begin, value = origin.value_positions[number], origin.options[number][1]
        if not any(error.option in option.names for option in self.declaration.options):
            start = definition.rfind(f"--{name}=", 0, begin)
            return DslError(Code.UNKNOWN_OPTION, definition, start, f"{inside}{error.message}")
        # A doubled quote shifts the characters after it.
        exact = definition.startswith(value, begin)
        position = begin + (error.position or 0 if exact else 0)
        return DslError(Code.BAD_VALUE, definition, position, f"{inside}{error.message}")


def parts_of(stream: Stream, definition: str, registry: LocalRegistry) -> list[Part]:
    """Returns the parts in the order of the flow: a source, processors and a sink.

    Args:
        stream: the parsed stream.
        definition: the text that it was parsed from, for errors.
        registry: the modules.

    Raises:
        DslError: a module is unknown, or an option of a composed module.
    """
    types = [_type(stream, number) for number in range(len(stream.modules))]
    found: list[Part] = []
    for module, type_ in zip(stream.modules, types, strict=True):
        whole = _Given(module, type_, module.label, "", dict(module.options), frozenset())
        for part in _expanded(whole, definition, registry, 0):
            found.append(part)
            if len(found) > _MOST_PARTS:
                raise DslError(Code.TOO_LONG, definition, module.position, f"Expected at most {_MOST_PARTS} modules")
    return found


def step_parts(job: Job, definition: str, registry: LocalRegistry) -> list[Part]:
    """Returns the steps of a job, in the order of the text.

    Args:
        job: the parsed job.
        definition: the text that it was parsed from, for errors.
        registry: the modules.

    Raises:
        DslError: a module is unknown.
    """
    return [
        part
        for module in job.modules
        for part in _expanded(
            _Given(module, "job", module.label, "", dict(module.options), frozenset()), definition, registry, 0
        )
    ]


def types_of(stream: Stream) -> dict[str, ModuleType]:
    """Returns label -> type of the modules, in the order of the flow.

    Example:
        >>> from storm_on_spark.xd.dsl import parse_stream
        >>> types_of(parse_stream("time | log"))
        {'time': 'source', 'log': 'sink'}
    """
    return {module.label: _type(stream, number) for number, module in enumerate(stream.modules)}


@dataclass(frozen=True)
class _Given:
    """A module, and its use in the definition."""

    origin: Module
    type: ModuleType
    label: str
    prefix: str
    options: dict[str, str]
    inherited: frozenset[str]
    name: str = ""


def _type(stream: Stream, number: int) -> ModuleType:
    if number == 0 and stream.source is None:
        return "source"
    last = number == len(stream.modules) - 1
    return "sink" if last and stream.sink is None else "processor"


def _expanded(given: _Given, definition: str, registry: LocalRegistry, level: int) -> Iterator[Part]:
    module = _module(given, definition, registry)
    if isinstance(module, ModuleDeclaration):
        options, origin = given.options, given.origin
        yield Part(given.type, given.label, module, options, origin, given.prefix, given.inherited)
        return
    if level == MOST_LEVELS:
        message = f"Expected at most {MOST_LEVELS} levels of composed modules"
        raise DslError(Code.TOO_LONG, definition, given.origin.position, message)
    yield from _inside(given, module, definition, registry, level)


def _inside(
    given: _Given, composed: ComposedModule, definition: str, registry: LocalRegistry, level: int
) -> Iterator[Part]:
    inside = composed.modules
    labels = [module.label for module in inside]
    for option in given.options:
        if option.partition(".")[0] not in labels or "." not in option:
            some = ", ".join(f"--{label}.…" for label in labels)
            raise _unknown_option(given, option, f"Expected one of {some}, got --{option:.100}", definition)
    for module, type_ in zip(inside, types_inside(composed.type, len(inside)), strict=True):
        prefix = f"{module.label}."
        over = {name.removeprefix(prefix): text for name, text in given.options.items() if name.startswith(prefix)}
        options = {**dict(module.options), **over}
        # A value in the composed module's own definition may have been overridden one level up.
        outside = {name for name in over if f"{prefix}{name}" not in given.inherited}
        yield from _expanded(
            replace(
                given,
                type=type_,
                label=f"{given.label}.{module.label}",
                prefix=f"{given.prefix}{prefix}",
                options=options,
                inherited=frozenset(options) - outside,
                name=module.name,
            ),
            definition,
            registry,
            level + 1,
        )


def _module(given: _Given, definition: str, registry: LocalRegistry) -> AnyModule:
    name, position = given.name or given.origin.name, given.origin.position
    try:
        return registry.find(given.type, name)
    except ModuleRegistryError as error:
        raise DslError(Code.UNKNOWN_MODULE, definition, position, str(error)) from error
    except KeyError:
        names = registry.names(given.type)
        near = difflib.get_close_matches(name, names, n=1)
        kinds: tuple[ModuleType, ...] = ("source", "processor", "sink", "job")
        others = [kind for kind in kinds if name in registry.names(kind)]
        hint = f", which is a {others[0]}" if others else f". Did you mean {near[0]}?" if near else ""
        message = f"Expected a {given.type} here, one of {', '.join(names)}; got {name:.100}{hint}"
        raise DslError(Code.UNKNOWN_MODULE, definition, position, message) from None


def _unknown_option(given: _Given, option: str, message: str, definition: str) -> DslError:
    names = [name for name, _ in given.origin.options]
    full = f"{given.prefix}{option}"
    if full not in names:
        return DslError(Code.UNKNOWN_OPTION, definition, given.origin.position, message)
    begin = given.origin.value_positions[names.index(full)]
    return DslError(Code.UNKNOWN_OPTION, definition, definition.rfind(f"--{full}=", 0, begin), message)
