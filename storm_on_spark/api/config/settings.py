"""Typed settings: a part of the configuration, read once and then passed on.

A subclass of `Settings` is a frozen dataclass. Each field names its key; the type of a key with a few values may be
`str`, or the `Literal` of them all. Defaults, and what a value may be, are in
the key table alone. The class is checked against the table when it is first used: type, unit, and that the key works.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from storm_on_spark.api.config.table import KEYS, LazyMapping
from storm_on_spark.api.config.types import ConfigKey, Level
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.text.wording import kind_of

_UNITS: Final = ("secs", "ms", "bytes", "mb", "mins")
_OTHER_UNITS: Final = {"sec": "secs"}

SomeSettings = TypeVar("SomeSettings", bound="Settings")


class Settings:
    """Base class of typed settings.

    Raises:
        TypeError: a subclass does not fit the key table.

    Example:
        >>> from dataclasses import dataclass
        >>> from typing import Annotated
        >>> @dataclass(frozen=True)
        ... class AckerSettings(Settings):
        ...     timeout_secs: Annotated[int, "topology.message.timeout.secs"]
        ...     max_pending: Annotated[int | None, "topology.max.spout.pending"]
        >>> AckerSettings.of({"topology.message.timeout.secs": 60})
        AckerSettings(timeout_secs=60, max_pending=None)
        >>> AckerSettings.of({"topology.max.spout.pending": "9"})
        Traceback (most recent call last):
        ...
        storm_on_spark.api.errors.ConfigError: topology.max.spout.pending must be an int of at least 1, not '9' (str)
    """

    keys: ClassVar[Mapping[str, ConfigKey]] = {}
    """Field -> its key."""

    def __init_subclass__(cls) -> None:
        cls.keys = LazyMapping(cls._keys)

    @classmethod
    def _keys(cls) -> dict[str, ConfigKey]:
        hints = get_type_hints(cls, include_extras=True)
        fields = {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}
        return {name: _key_of(f"{cls.__name__}.{name}", name, hint) for name, hint in fields.items()}

    @classmethod
    def of(cls: type[SomeSettings], conf: Mapping[str, object]) -> SomeSettings:
        """Returns the settings in a configuration; what isn't set there, or is None, has its default.

        Raises:
            ConfigError: a value is of another type, or out of range.
        """
        return cls(**{name: _value(key, conf.get(key.name)) for name, key in cls.keys.items()})


def _key_of(where: str, name: str, hint: Any) -> ConfigKey:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"{where} names no key: annotate it as Annotated[type, key]")
    given, key_name = get_args(hint)
    key = KEYS.get(key_name)
    if key is None or key.level is not Level.HONOURED:
        raise TypeError(f"{where}: {key_name} is not a configuration key that has an effect")
    wanted = key.type.python if key.default is not None else key.type.python | None
    if given != wanted and _plain(given, key) != wanted:
        raise TypeError(f"{where}: {key_name} is {key.type}, so the field must be {wanted}, not {given}")
    last = key_name.rpartition(".")[2]
    unit = _OTHER_UNITS.get(last, last)
    if unit in _UNITS and not name.endswith(f"_{unit}"):
        raise TypeError(f"{where} holds {unit}: its name must end with _{unit}")
    return key


def _plain(hint: Any, key: ConfigKey) -> Any:
    """Returns a type with `str` in place of the `Literal` that has all values of a key."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    named = [set(get_args(part)) for part in parts if get_origin(part) is Literal]
    if named != [set(key.type.choices)]:
        return hint
    return str | None if NoneType in parts else str


def _value(key: ConfigKey, value: object) -> object:
    if value is None:
        value = key.default
    elif not key.type.accepts(value):
        raise ConfigError(f"{key.name} must be {key.type}, not {kind_of(value)}", key=key.name)
    if isinstance(value, list):
        return tuple(value)
    if key.type.python is float and isinstance(value, int):
        return float(value)
    return value
