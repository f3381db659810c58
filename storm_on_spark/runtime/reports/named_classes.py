"""Classes that a configuration names: consumers of metrics, and event loggers."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from storm_on_spark.api.errors import ConfigError

T = TypeVar("T")


def entries_of(key: str, registered: object, argument: str) -> Iterator[tuple[str, Any]]:
    """Yields the name of each class, and what the configuration says of it.

    Args:
        key: of the configuration.
        registered: its value: a mapping with `class`, or a list of such.
        argument: under which name a mapping says something of the class.

    Raises:
        ConfigError: an entry is no such mapping.

    Example:
        >>> list(entries_of("a.key", [{"class": "my.Logger", "arguments": {"a": 1}}], "arguments"))
        [('my.Logger', {'a': 1})]
    """
    entries: Sequence[Any] = registered if isinstance(registered, (list, tuple)) else [registered]
    for entry in entries:
        name = entry.get("class") if isinstance(entry, Mapping) else None
        if not isinstance(name, str):
            raise ConfigError(f"{key} has mappings with `class` and `{argument}`, not {entry!r:.200}", key=key)
        yield name, entry.get(argument)


def made(key: str, name: str, base: type[T]) -> T:
    """Returns an object of a class.

    Args:
        key: of the configuration.
        name: as `module.Class`.
        base: what it must be a subclass of.

    Raises:
        ConfigError: it can't be made.
    """
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"{key} names {name!r}, which can't be used: {error}; give module.Class", key=key) from error
    if not isinstance(found, base):
        raise ConfigError(f"{key} names {name!r}, which is not a subclass of {base.__name__}", key=key)
    return found
