"""`Config`, and what checks and merges configuration."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from storm_on_spark.api.config.names import ConfigNames
from storm_on_spark.api.config.table import FAMILIES, FORMER_NAMES, KEYS, PROFILES
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.text.wording import kind_of

KNOWN_PREFIXES: Final = (
    "drpc.",
    "java.",
    "nimbus.",
    "pacemaker.",
    "storm.",
    "supervisor.",
    "topology.",
    "ui.",
    "xd.",
    "zk.",
)
"""A key that starts so and isn't in `KEYS` is a mistake; others are the user's own and pass unchecked."""

_SAME_WORD: Final = 0.66
"""How alike two words of a name are, at least, when one is taken for a slip of the other."""
_SAME_NAME: Final = 0.93
"""The same of two whole names, which may be divided into words differently."""


class Config(ConfigNames, dict[str, Any]):
    """Configuration of a topology: a `dict` with Storm's key names as constants and its setters.

    A plain `dict` does as well wherever a configuration is asked for. Keys that don't start like one of
    Storm's (`topology.`, `storm.`, ...) are your own: `open` and `prepare` receive them. `None` means the
    default.

    Example:
        >>> conf = Config({"my.greeting": "hello"})
        >>> conf.set_max_spout_pending(5000)
        >>> conf[Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS] = 60
        >>> conf.validate()
        >>> conf["topology.debugg"] = True
        >>> conf.validate()
        Traceback (most recent call last):
        ...
        storm_on_spark.api.errors.ConfigError: unknown key "topology.debugg". Did you mean "topology.debug"?
    """

    TOPOLOGY_ACKERS: Final = ConfigNames.TOPOLOGY_ACKER_EXECUTORS
    """The name of `TOPOLOGY_ACKER_EXECUTORS` in Storm's guide."""

    def validate(self) -> None:
        """Checks all keys and values; see `validate_conf`.

        Raises:
            ConfigError: naming every problem.
        """
        validate_conf(self)

    def register_serialization(self, cls: type | str, serializer: type | str | None = None) -> None:
        """Adds a class to `topology.kryo.register`, as Storm does; without effect here, where values are pickled.

        Args:
            cls: the class, or its name.
            serializer: the class that serializes it, or its name.

        Raises:
            ConfigError: an argument is neither a class nor a name.

        Example:
            >>> conf = Config()
            >>> conf.register_serialization("com.example.Order")
            >>> conf.register_serialization("com.example.Line", "com.example.LineSerializer")
            >>> conf["topology.kryo.register"]
            ['com.example.Order', {'com.example.Line': 'com.example.LineSerializer'}]
        """
        name = _class_name(cls, "a class")
        entry = name if serializer is None else {name: _class_name(serializer, "a serializer")}
        registered = self.get(self.TOPOLOGY_KRYO_REGISTER) or []
        # A mapping from classes to serializers is allowed as well.
        entries = [registered] if isinstance(registered, Mapping) else registered
        validate_conf({self.TOPOLOGY_KRYO_REGISTER: entries})
        self._set(self.TOPOLOGY_KRYO_REGISTER, [*entries, entry])

    def set_debug(self, debug: bool) -> None:
        """Sets whether every tuple that is emitted is logged."""
        self._set(self.TOPOLOGY_DEBUG, debug)

    def set_environment(self, variables: Mapping[str, str]) -> None:
        """Sets environment variables for the topology's processes."""
        self._set(self.TOPOLOGY_ENVIRONMENT, dict(variables))

    def set_max_spout_pending(self, limit: int) -> None:
        """Sets how many tuples of each spout task may be pending."""
        self._set(self.TOPOLOGY_MAX_SPOUT_PENDING, limit)

    def set_max_task_parallelism(self, limit: int) -> None:
        """Sets how many tasks any component may have."""
        self._set(self.TOPOLOGY_MAX_TASK_PARALLELISM, limit)

    def set_message_timeout_secs(self, seconds: int) -> None:
        """Sets how long a tuple tree may take."""
        self._set(self.TOPOLOGY_MESSAGE_TIMEOUT_SECS, seconds)

    def set_num_ackers(self, tasks: int) -> None:
        """Sets how many acker tasks there are; with 0 nothing is tracked."""
        self._set(self.TOPOLOGY_ACKER_EXECUTORS, tasks)

    def set_num_event_loggers(self, tasks: int) -> None:
        """Sets how many event loggers there are."""
        self._set(self.TOPOLOGY_EVENTLOGGER_EXECUTORS, tasks)

    def set_num_workers(self, workers: int) -> None:
        """Sets how many acker tasks there are unless `set_num_ackers` does; Spark decides about processes."""
        self._set(self.TOPOLOGY_WORKERS, workers)

    def set_stats_sample_rate(self, rate: float) -> None:
        """Sets the share of the tuples that are timed."""
        self._set(self.TOPOLOGY_STATS_SAMPLE_RATE, rate)

    def set_topology_priority(self, priority: int) -> None:
        """Sets the priority of the topology; 0 goes before everything."""
        self._set(self.TOPOLOGY_PRIORITY, priority)

    def set_topology_version(self, version: str) -> None:
        """Sets your own version of the topology."""
        self._set(self.TOPOLOGY_VERSION, version)

    def _set(self, key: str, value: object) -> None:
        validate_conf({key: value})
        self[key] = value

    def __repr__(self) -> str:
        return f"Config({dict(self)!r})"


def _class_name(cls: object, what: str) -> str:
    if isinstance(cls, type):
        return f"{cls.__module__}.{cls.__qualname__}"
    if isinstance(cls, str) and cls:
        return cls
    raise ConfigError(
        f"register_serialization takes {what} or its name, not {kind_of(cls)}", key=ConfigNames.TOPOLOGY_KRYO_REGISTER
    )


def default_of(key: str) -> object:
    """Returns what a key means when it isn't set.

    Raises:
        ConfigError: there is no such key.

    Example:
        >>> default_of(Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS)
        30
    """
    if key not in KEYS:
        raise ConfigError(_unknown(key), key=key)
    return KEYS[key].default


def problems_of(conf: Mapping[str, object], *, component: bool = False) -> list[str]:
    """Returns what is wrong with a configuration, a sentence per key.

    Args:
        conf: keys and values; `None` is always right and means the default.
        component: whether this is the configuration of a single component, where most keys make no sense.

    Example:
        >>> problems_of({"topology.workers": "2"})
        ["topology.workers must be an int of at least 1, not '2' (str)"]
        >>> problems_of({"topology.workers": 2}, component=True)
        ['topology.workers is a setting of the whole topology; a single component has none of its own']
    """
    return [problem for _, problem in _problems(conf, component)]


def validate_conf(conf: Mapping[str, object], where: str = "", *, component: bool = False) -> None:
    """Checks a configuration.

    Args:
        conf: as for `problems_of`.
        where: whose configuration it is, for the message; e.g. `bolt "count"`.
        component: as for `problems_of`.

    Raises:
        ConfigError: naming every problem, one per line.

    Example:
        >>> validate_conf({"topology.debug": 1}, 'bolt "sum"', component=True)
        Traceback (most recent call last):
        ...
        storm_on_spark.api.errors.ConfigError: bolt "sum": topology.debug must be True or False, not 1 (int)
    """
    found = list(_problems(conf, component))
    if found:
        prefix = f"{where}: " if where else ""
        raise ConfigError("\n".join(f"{prefix}{problem}" for _, problem in found), key=found[0][0])


def effective_conf(
    topology_conf: Mapping[str, object], component_conf: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """Returns the configuration that a task sees.

    The component's settings take precedence over the topology's, those over what `topology.profile` sets, and that over
    the defaults of all `topology.` keys, so that each of these keys is there. What is `None` then is the default.

    Example:
        >>> conf = effective_conf({"topology.debug": True, "topology.workers": None}, {"my.key": 7})
        >>> conf["topology.debug"], conf["topology.workers"], conf["topology.message.timeout.secs"]
        (True, 1, 30)
        >>> conf = effective_conf({"topology.profile": "latency", "topology.partitions": 4})
        >>> conf["topology.partitions"], conf["topology.batch.max.tuples"]
        (4, 20000)
    """
    profile = PROFILES.get(str(topology_conf.get(ConfigNames.TOPOLOGY_PROFILE)), {})
    defaults = {**_topology_defaults(), **profile}
    merged = {**defaults, **topology_conf, **(component_conf or {})}
    for name, value in merged.items():
        if value is None and name in KEYS:
            merged[name] = defaults.get(name, KEYS[name].default)
    return merged


@cache
def _topology_defaults() -> Mapping[str, object]:
    return {name: key.default for name, key in KEYS.items() if name.startswith("topology.")}


def _problems(conf: Mapping[str, object], component: bool) -> Iterator[tuple[str, str]]:
    """Yields (key, problem)."""
    for name, value in conf.items():
        problem = _problem(name, value, component)
        if problem is not None:
            yield str(name), problem


def _problem(name: object, value: object, component: bool) -> str | None:
    if not isinstance(name, str):
        return f"a key must be a string, not {kind_of(name)}"
    key = KEYS.get(name)
    if key is None:
        return None if name.startswith(tuple(FAMILIES)) or _is_users_own(name) else _unknown(name)
    if component and not key.component and name.startswith(KNOWN_PREFIXES):
        whose = "the whole topology" if key.scope == "topology" else f"the {key.scope}"
        return f"{name} is a setting of {whose}; a single component has none of its own"
    if value is None or key.type.accepts(value):
        return None
    return f"{name} must be {key.type}, not {kind_of(value)}"


def _is_users_own(name: str) -> bool:
    return not name.startswith(KNOWN_PREFIXES) and _right_prefix(name) is None


def _right_prefix(name: str) -> str | None:
    """Returns the key that `name` would be but for a slip in its first word (`toplogy.debug`)."""
    first, _, rest = name.partition(".")
    for prefix in difflib.get_close_matches(f"{first}.", KNOWN_PREFIXES, n=1, cutoff=0.8):
        return f"{prefix}{rest}" if f"{prefix}{rest}" in KEYS else None
    return None


def _unknown(name: str) -> str:
    new = FORMER_NAMES.get(name)
    if new:
        return f'unknown key "{name}". Its name is "{new}" now, and its value {KEYS[new].type}.'
    if new is not None:
        return f'unknown key "{name}". Storm has dropped it, and no other key took its place: remove it.'
    prefix, dot, rest = name.partition(".")
    # Only what follows the first word is compared: it would make all keys look alike.
    known = (*KEYS, *(key for key in FAMILIES if not key.endswith(".")))
    family = {key.partition(".")[2]: key for key in known if key.startswith(f"{prefix}{dot}")}
    alike = (near for near in difflib.get_close_matches(rest, family, n=10) if _is_slip(rest, near))
    nearest = _right_prefix(name) or next((family[near] for near in alike), None)
    if nearest is not None:
        return f'unknown key "{name}". Did you mean "{nearest}"?'
    if name.startswith(KNOWN_PREFIXES):
        owner = "Spring XD" if prefix == "xd" else "Storm"
        return f'unknown key "{name}". Keys that start with "{prefix}." are {owner}\'s; call your own differently.'
    return f'unknown key "{name}".'


def _is_slip(given: str, known: str) -> bool:
    """Returns whether `given` may be meant for `known`: words may be misspelt or missing, but not other words.

    Without this check `nimbus.thrift.host` would be taken for `nimbus.thrift.port`.
    """
    if difflib.SequenceMatcher(None, given, known).ratio() >= _SAME_NAME:
        return True
    words = known.split(".")
    return all(
        difflib.get_close_matches(word, words, n=1, cutoff=_SAME_WORD) for word in re.split(r"[._-]", given) if word
    )
