"""The key table: what `keys.ini` says.

The file is read when something is first looked up: most commands, and programs that only import this package, do not
need it. What it is read with is imported then, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final, TypeVar

from storm_on_spark.api.config.types import ANY, ConfigKey, Level, type_named

_Value = TypeVar("_Value")

_PROFILE: Final = "profile "
"""How the section of a profile starts."""


class LazyMapping(Mapping[str, _Value]):
    """A mapping that `read` makes when something is first looked up in it."""

    def __init__(self, read: Callable[[], Mapping[str, _Value]]) -> None:
        self._read = cache(read)

    def __getitem__(self, name: str) -> _Value:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


@cache
def sections() -> Mapping[str, Mapping[str, str]]:
    """Returns the sections of `keys.ini`, with their options; lines of one value are joined.

    Example:
        >>> sections()["topology.debug"]["type"]
        'bool'
    """
    from configparser import ConfigParser, ExtendedInterpolation
    from pathlib import Path

    parser = ConfigParser(interpolation=ExtendedInterpolation(), delimiters="=", empty_lines_in_values=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # Storm's names have capitals
    parser.read_string(Path(__file__).with_name("keys.ini").read_text("utf-8"))
    return {
        name: {option: value.replace("\n", " ") for option, value in parser.items(name)} for name in parser.sections()
    }


def _keys() -> dict[str, ConfigKey]:
    from json import loads

    found = {}
    for name, said in sections().items():
        if "type" in said:
            level = next((level for level in Level if level.value in said), Level.HONOURED)
            default = loads(said.get("default", "null"))
            why = said.get(level.value, "")
            found[name] = ConfigKey(
                name, type_named(said["type"]), default, said["doc"], level, why, component="component" in said
            )
    return found


def _profiles() -> dict[str, dict[str, object]]:
    from json import loads

    return {
        name.removeprefix(_PROFILE): {key: loads(value) for key, value in said.items()}
        for name, said in sections().items()
        if name.startswith(_PROFILE)
    }


KEYS: Final[Mapping[str, ConfigKey]] = LazyMapping(_keys)
"""All keys by name."""

PROFILES: Final[Mapping[str, Mapping[str, object]]] = LazyMapping(_profiles)
"""Value of `topology.profile` -> key -> value. A key that is set anywhere else wins."""

FAMILIES: Final[Mapping[str, str]] = LazyMapping(lambda: sections()["families"])
"""How the keys of a family start -> why they have no effect."""

FORMER_NAMES: Final[Mapping[str, str]] = LazyMapping(lambda: sections()["former names"])
"""Names that keys had in earlier versions of Storm -> their names since; empty if no other key took the place."""


def family_key(name: str) -> ConfigKey | None:
    """Returns what is known of a key that is in a family; None if it is in none.

    Example:
        >>> family_key("storm.log.dir").why
        'daemons log to standard error: direct it to a file where you start them'
    """
    for start, why in FAMILIES.items():
        if name.startswith(start):
            return ConfigKey(name, ANY, None, "A key of Storm's.", Level.ACCEPTED, why)
    return None
