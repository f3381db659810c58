"""The declaration of a module: a component and its typed options, in one place."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from storm_on_spark.api.component import BaseBasicBolt, BaseRichBolt, BaseRichSpout
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.xd.expressions import ExpressionError, parse_expression

ModuleType = Literal["source", "processor", "sink", "job"]
OptionType = Literal["text", "integer", "number", "boolean", "expression"]
Component = BaseRichSpout | BaseBasicBolt | BaseRichBolt

STREAM_NAME: Final = "${xd.stream.name}"
"""A default that stands for the stream's name."""
HOME: Final = "${xd.home}"
"""Prefix of a default that is a path in the folder of `home()`."""
MAXIMUM_NUMBER: Final = 2**31 - 1

_UNSET: Final = ("", "-1")
"""Defaults that stand for no value, and for no limit."""
_BOOLEANS: Final = {"true": True, "false": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}(\.[0-9]{1,9})?")


def home() -> Path:
    """Returns the folder for data of streams on this machine, such as counters.

    It is `STORM_SPARK_XD_HOME`, or else `storm-spark/xd` in the user's data folder.
    """
    if given := os.environ.get("STORM_SPARK_XD_HOME"):
        return Path(given).absolute()
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "storm-spark" / "xd"


class OptionError(ValueError):
    """An option that is unknown, missing, or has an invalid value.

    `position` is a place in that value, where the error has one; `option` is the option's name.
    """

    def __init__(self, message: str, position: int | None = None, option: str = "") -> None:
        super().__init__(message, position, option)
        self.message = message
        self.position = position
        self.option = option

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Option:
    """An option of a module.

    Args:
        name: as written after `--`.
        type: of its value.
        default: as text, as in a definition; None for a required option.
        help: one sentence.
        minimum: the least value of a number.
        choices: the values that are allowed; empty for all.
        check: called with the typed value; raises `ValueError` if it is invalid.
        also: other names, from Spring XD.
    """

    name: str
    type: OptionType
    default: str | None
    help: str
    minimum: float | None = None
    choices: tuple[str, ...] = ()
    check: Callable[[Any], object] | None = None
    also: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the usual one first."""
        return (self.name, *self.also)

    def given(self, options: Collection[str]) -> str | None:
        """Returns the name under which it is given; None if it is not given.

        Raises:
            OptionError: it is given under two names.
        """
        found = [name for name in self.names if name in options]
        if len(found) > 1:
            raise OptionError(f"Expected one of --{found[0]} and --{found[1]}, which are the same", option=found[1])
        return found[0] if found else None

    @property
    def argument(self) -> str:
        """The parameter of the component that gets the value: `fixed_delay` for `fixedDelay`."""
        return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", self.name).lower()

    def value(self, text: str) -> Any:
        """Returns the typed value of a text.

        Raises:
            OptionError: it is not a valid value of the option.
        """
        found: Any = text
        try:
            if self.type == "expression":
                found = parse_expression(text)
            elif self.type == "boolean":
                found = _BOOLEANS[text]
            elif self.type != "text":
                found = self._number(text)
            if self.check is not None:
                self.check(found)
        except ExpressionError as error:
            raise OptionError(error.message, error.position) from error
        except KeyError:
            raise OptionError(f"Expected true or false, got {text!r:.100}") from None
        except ValueError as error:
            raise OptionError(str(error)) from error
        if self.choices and text not in self.choices:
            raise OptionError(f"Expected one of {', '.join(self.choices)}, got {text!r:.100}")
        return found

    def _number(self, text: str) -> float:
        whole = self.type == "integer"
        low = "" if self.minimum is None else f" of at least {self.minimum:g}"
        message = f"Expected {'an integer' if whole else 'a number'}{low}, got {text!r:.100}"
        if not (_INTEGER if whole else _NUMBER).fullmatch(text):
            raise ValueError(message)
        number = int(text) if whole else float(text)
        if self.minimum is not None and number < self.minimum:
            raise ValueError(message)
        if abs(number) > MAXIMUM_NUMBER:
            raise ValueError(f"Expected at most {MAXIMUM_NUMBER}, got {text}")
        return number


@dataclass(frozen=True)
class ModuleDeclaration:
    """A module: its name, a description, its options and the component that it becomes.

    The component gets each option as an argument: `fixedDelay` as `fixed_delay`. For the type `job`, the component is
    the function of a step, which gets a `StepContext` before these arguments.
    """

    type: ModuleType
    name: str
    help: str
    component: Callable[..., Any]
    options: tuple[Option, ...] = ()

    def make(self, given: Mapping[str, str], stream: str) -> Component:
        """Returns the component.

        Args:
            given: option -> its value as text.
            stream: the stream's name.

        Raises:
            OptionError: an option is unknown, missing, or has an invalid value.

        Example:
            >>> from storm_on_spark.xd.modules import find_module
            >>> find_module("source", "time").make({"fixedDelay": "5"}, "ticktock").fixed_delay
            5.0
        """
        try:
            made: Component = self.component(**self.values(given, stream))
            return made
        except ConfigError as error:
            raise OptionError(str(error)) from error

    def values(self, given: Mapping[str, str], stream: str, later: Collection[str] = ()) -> dict[str, Any]:
        """Returns the arguments of the component: option by option, typed.

        Args:
            given: option -> its value as text.
            stream: the name of the stream or job.
            later: options that get their values later.

        Raises:
            OptionError: an option is unknown or missing, or can't have its value.
        """
        known = {name for option in self.options for name in option.names}
        for name in (*given, *later):
            if name not in known:
                raise OptionError(f"Expected one of {self.option_names()}, got --{name:.100}", option=name)
        values: dict[str, Any] = {}
        for option in self.options:
            written = option.given((*given, *later))
            if written is not None and written in later:
                continue
            text = option.default if written is None else given[written]
            if text is None:
                raise OptionError(f"Expected --{option.name}, which {self.name} needs", option=option.name)
            try:
                values[option.argument] = option.value(_filled(text, stream))
            except OptionError as error:
                raise OptionError(error.message, error.position, written or option.name) from error
        return values

    def texts(self, given: Mapping[str, str], stream: str) -> dict[str, str]:
        """Returns the values of options as text, with defaults; unset options are left out.

        Args:
            given: option -> its value as text.
            stream: the stream's name.

        Example:
            >>> from storm_on_spark.xd.modules import find_module
            >>> find_module("sink", "log").texts({"level": "WARN"}, "ticktock")
            {'name': 'ticktock', 'expression': 'payload', 'level': 'WARN'}
            >>> find_module("source", "time").texts({}, "ticktock")
            {'fixedDelay': '1', 'format': 'yyyy-MM-dd HH:mm:ss'}
        """
        texts: dict[str, str] = {}
        for option in self.options:
            name = option.given(given)
            text = option.default if name is None else given[name]
            if text is not None and (name is not None or text not in _UNSET):
                texts[option.name] = _filled(text, stream)
        return texts

    def option_names(self) -> str:
        """Returns the options in the notation of a definition."""
        return ", ".join(f"--{option.name}" for option in self.options) or "no options"


def _filled(text: str, stream: str) -> str:
    if text == STREAM_NAME:
        return stream
    return f"{home()}{text.removeprefix(HOME)}" if text.startswith(f"{HOME}/") else text
