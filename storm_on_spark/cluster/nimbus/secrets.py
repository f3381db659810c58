"""Which settings are secrets: they are kept out of ZooKeeper, of logs and of what REST answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SECRET = re.compile(
    r"passw|secret|token|credential|payload|private.?key|api.?key|access.?key|superacl|sasl\.jaas", re.IGNORECASE
)
HIDDEN = "*****"


def is_secret(key: str) -> bool:
    """Returns whether what a key says is nobody else's business, judging by its name.

    Example:
        >>> is_secret("storm.zookeeper.auth.payload"), is_secret("kafka.password"), is_secret("topology.workers")
        (True, True, False)
    """
    return _SECRET.search(key) is not None


def without_secrets(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a configuration without what is secret, at any depth.

    Example:
        >>> without_secrets({"my.db": {"host": "a", "password": "b"}, "my.token": "c"})
        {'my.db': {'host': 'a'}}
    """
    return {key: _cleaned(value) for key, value in conf.items() if not is_secret(str(key))}


def hidden(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a configuration to show: secrets are there, and unreadable.

    Example:
        >>> hidden({"my.token": "c", "my.size": 3, "other.token": None})
        {'my.token': '*****', 'my.size': 3, 'other.token': None}
    """
    return {key: HIDDEN if is_secret(str(key)) and value is not None else _hidden(value) for key, value in conf.items()}


def _cleaned(value: Any) -> Any:
    if isinstance(value, Mapping):
        return without_secrets(value)
    return [_cleaned(item) for item in value] if isinstance(value, (list, tuple)) else value


def _hidden(value: Any) -> Any:
    if isinstance(value, Mapping):
        return hidden(value)
    return [_hidden(item) for item in value] if isinstance(value, (list, tuple)) else value
