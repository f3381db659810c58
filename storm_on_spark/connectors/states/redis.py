"""State in Redis: each state is a hash, with a field for each key."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.trident.state.external import DEFAULT_CACHE, ExternalMapStateFactory, TextStore
from storm_on_spark.trident.state.values import StateType


class RedisMapState(ExternalMapStateFactory):
    """Makes states in a hash of Redis; Storm's `RedisMapState`.

    A batch is written by one command, so all of it or nothing, with the mark of its task. Fields are keys as lists in
    JSON; what a value looks like, see `storm_on_spark.trident.state.encoding`. Redis must keep what it has acknowledged
    (`appendonly yes`, `appendfsync always`) where a loss of power may not lose batches.

    Args:
        connect: returns a new `redis.Redis` (extra `redis`). It is pickled with the topology: let it read passwords
            where it runs.
        name: of the hash. No two states have one name.
        kind: what is stored beside a value.
        cache_size: the most keys that each task keeps in memory.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> def connect():
        ...     return redis.Redis("cache.example", password=os.environ["REDIS_PASSWORD"], socket_timeout=5)
        >>> factory = RedisMapState(connect, "word-counts")
        >>> factory.kind
        <StateType.OPAQUE: 'opaque'>
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        name: str,
        kind: StateType = StateType.OPAQUE,
        cache_size: int = DEFAULT_CACHE,
    ) -> None:
        super().__init__(kind, cache_size)
        if not callable(connect):
            raise ConfigError("expected a function that connects to Redis", key="connect")
        if not name:
            raise ConfigError("the name of a hash is not empty", key="name")
        self._connect = connect
        self._name = name

    def open_store(self) -> TextStore:  # noqa: D102
        return _RedisStore(self._connect, self._name)


class _RedisStore(TextStore):
    def __init__(self, connect: Callable[[], Any], name: str) -> None:
        self.title = f"Redis (hash {name})"
        self._connect = connect
        self._name = name
        self._client: Any = None

    def read(self, keys: Sequence[str]) -> Mapping[str, str]:
        found = self._reached().hmget(self._name, list(keys))
        return {
            key: text.decode() if isinstance(text, bytes) else text
            for key, text in zip(keys, found, strict=True)
            if text is not None
        }

    def write(self, entries: Mapping[str, str]) -> None:
        self._reached().hset(self._name, mapping=dict(entries))

    def is_away(self, error: Exception) -> bool:
        errors = _errors()
        away = (errors.ConnectionError, errors.TimeoutError, errors.ReadOnlyError, errors.TryAgainError)
        return isinstance(error, (*away, OSError))

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _reached(self) -> Any:
        if self._client is None:
            with contextlib.suppress(ImportError):
                self._client = self._connect()
            if self._client is None:
                _errors()  # says which package is missing
                raise ConfigError("the function that connects to Redis returned nothing", key="connect")
        return self._client


def _errors() -> Any:
    try:
        import redis.exceptions
    except ImportError:
        raise SetupError(needs_extra("state in Redis", "redis", "redis")) from None
    return redis.exceptions
