"""Which settings of a configuration change nothing, in a sentence for their author."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from storm_on_spark.api.config.table import KEYS, family_key
from storm_on_spark.api.config.types import ConfigKey, Level

_NAMED: Final = 8
"""How many keys the sentence names; a configuration of Storm's may have a hundred."""


def without_effect(*confs: Mapping[str, object]) -> list[ConfigKey]:
    """Returns the keys that are set and change nothing here, by name.

    What is `None` or the key's default is not set to anything: that nothing happens is what it says.

    Args:
        confs: of the topology, and of its components.

    Example:
        >>> [key.name for key in without_effect({"topology.priority": 3, "topology.workers": 2, "my.key": 1})]
        ['topology.priority']
    """
    found = {
        name: key
        for conf in confs
        for name, value in conf.items()
        if (key := KEYS.get(name) or family_key(str(name)))
        and key.level is not Level.HONOURED
        and not _is_default(value, key.default)
    }
    return [found[name] for name in sorted(found)]


def without_effect_sentence(keys: Iterable[ConfigKey]) -> str:
    """Returns the warning about keys that change nothing; empty if there are none.

    Example:
        >>> without_effect_sentence(without_effect({"topology.priority": 3}))
        'No effect here: topology.priority (planned). `storm-spark config KEY` says why.'
    """
    keys = list(keys)
    if not keys:
        return ""
    # What is missing here counts more than what has nothing to act on.
    ordered = sorted(keys, key=lambda key: key.level is Level.ACCEPTED)
    named = ", ".join(f"{key.name} ({key.level.value})" for key in ordered[:_NAMED])
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return f"No effect here: {named}{more}. `storm-spark config KEY` says why."


def _is_default(value: object, default: object) -> bool:
    if isinstance(value, list) and isinstance(default, tuple):
        return tuple(value) == default
    return value is None or (type(value) is type(default) and value == default)
