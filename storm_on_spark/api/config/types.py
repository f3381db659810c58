"""What is known about one configuration key, and what its values may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, Final

from storm_on_spark.api.text.wording import quoted


@dataclass(frozen=True)
class ConfigType:
    """What a value may be.

    Example:
        >>> count = integer(1)
        >>> str(count), count.accepts(4), count.accepts(0), count.accepts(True), count.accepts("4")
        ('an int of at least 1', True, False, False, False)
    """

    name: str
    """As messages name it."""
    accepts: Callable[[object], bool] = field(repr=False, compare=False)
    """Whether a value (other than `None`, which always means the default) is one of this type."""
    python: Any = field(default=object, repr=False, compare=False)
    """Its type in `Settings`, where lists are tuples."""
    choices: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """All values that there are, if it is one of a few strings."""

    def __str__(self) -> str:
        return self.name


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value  # NaN is none


def _is_texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def _in_range(value: object, minimum: float | None, maximum: float | None) -> bool:
    assert isinstance(value, (int, float))
    return (minimum is None or value >= minimum) and (maximum is None or value <= maximum)


def _range_text(minimum: float | None, maximum: float | None) -> str:
    if minimum is not None and maximum is not None:
        return f" from {minimum} to {maximum}"
    return "" if minimum is None else f" of at least {minimum}"


def integer(minimum: int | None = None, maximum: int | None = None) -> ConfigType:
    """Returns the type of whole numbers in a range; `True` and `30.0` are none."""
    return ConfigType(
        f"an int{_range_text(minimum, maximum)}", lambda v: _is_int(v) and _in_range(v, minimum, maximum), int
    )


def number(minimum: float | None = None, maximum: float | None = None) -> ConfigType:
    """Returns the type of numbers in a range."""
    return ConfigType(
        f"a number{_range_text(minimum, maximum)}", lambda v: _is_number(v) and _in_range(v, minimum, maximum), float
    )


def choice(*values: str) -> ConfigType:
    """Returns the type of a few strings."""
    return ConfigType(f"one of {quoted(values)}", lambda v: isinstance(v, str) and v in values, str, values)


def mapping(values: ConfigType) -> ConfigType:
    """Returns the type of mappings from strings to `values`."""
    return ConfigType(
        f"a mapping from strings, each value {values}",
        lambda v: (
            isinstance(v, Mapping) and all(isinstance(key, str) and values.accepts(value) for key, value in v.items())
        ),
    )


BOOL: Final = ConfigType("True or False", lambda v: isinstance(v, bool), bool)
TEXT: Final = ConfigType("a string", lambda v: isinstance(v, str), str)
TEXTS: Final = ConfigType("a list of strings", _is_texts, tuple[str, ...])
TEXT_OR_TEXTS: Final = ConfigType(
    "a string or a list of strings", lambda v: isinstance(v, str) or _is_texts(v), str | tuple[str, ...]
)
LIST: Final = ConfigType("a list", lambda v: isinstance(v, (list, tuple)))
MAPPING: Final = ConfigType("a mapping", lambda v: isinstance(v, Mapping))
LIST_OR_MAPPING: Final = ConfigType("a list or a mapping", lambda v: isinstance(v, (list, tuple, Mapping)))
PORT: Final = integer(1, 65535)
PORTS: Final = ConfigType(
    "a list of different ports (1 to 65535)",
    lambda v: isinstance(v, (list, tuple)) and all(map(PORT.accepts, v)) and len(set(v)) == len(v),
    tuple[int, ...],
)
ANY: Final = ConfigType("anything", lambda v: True)

_NAMED: Final = {
    "bool": BOOL,
    "text": TEXT,
    "texts": TEXTS,
    "text or texts": TEXT_OR_TEXTS,
    "list": LIST,
    "mapping": MAPPING,
    "list or mapping": LIST_OR_MAPPING,
    "port": PORT,
    "ports": PORTS,
}
_RANGES: Final[Mapping[str, Callable[..., ConfigType]]] = {"int": integer, "number": number}


@cache
def type_named(name: str) -> ConfigType:
    """Returns the type that `keys.ini` calls so; the head of that file lists the names.

    Example:
        >>> str(type_named("int >= 1")), str(type_named("number 0.1..3600")), str(type_named("mapping to text"))
        ('an int of at least 1', 'a number from 0.1 to 3600', 'a mapping from strings, each value a string')
        >>> str(type_named("one of driver, executors"))
        'one of "driver", "executors"'
    """
    if name in _NAMED:
        return _NAMED[name]
    if name.startswith("one of "):
        return choice(*name.removeprefix("one of ").split(", "))
    if name.startswith("mapping to "):
        return mapping(type_named(name.removeprefix("mapping to ")))
    kind, _, bounds = name.partition(" ")
    return _RANGES[kind](*(_bound(text) for text in bounds.removeprefix(">= ").split("..")))


def _bound(text: str) -> float:
    return float(text) if "." in text else int(text)


class Level(Enum):
    """How far a key is supported."""

    HONOURED = "honoured"
    """It does what it does in Storm, or what its documentation says."""
    PLANNED = "planned"
    """It is checked, and has no effect yet: what it belongs to is still to come."""
    ACCEPTED = "accepted"
    """It is checked, so that Storm's configuration files can be used as they are, and has no effect."""


@dataclass(frozen=True)
class ConfigKey:
    """One key of Storm's, or of Storm on Spark's own.

    Example:
        >>> from storm_on_spark.api.config import KEYS
        >>> key = KEYS["topology.message.timeout.secs"]
        >>> key.default, str(key.type), key.level.value, key.component
        (30, 'an int of at least 1', 'honoured', False)
    """

    name: str
    type: ConfigType
    default: object
    """What an unset key, or one set to `None`, means."""
    doc: str
    """What it says, in a sentence or two."""
    level: Level
    why: str = ""
    """Why it has no effect, where it has none."""
    component: bool = False
    """Whether a single component may set it too."""

    @property
    def scope(self) -> str:
        """Whose configuration has the key: that of a topology, of the cluster's processes, or of those of streams.

        Example:
            >>> from storm_on_spark.api.config import KEYS
            >>> [KEYS[name].scope for name in ("topology.debug", "supervisor.slots.ports", "zk.client.connect")]
            ['topology, component', 'cluster', 'streams']
        """
        if self.name.startswith(("topology.", "storm.id")):
            return "topology, component" if self.component else "topology"
        return "streams" if self.name.startswith(("xd.", "zk.")) else "cluster"
