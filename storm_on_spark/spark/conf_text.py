"""Configuration as text: `-c KEY=VALUE` and YAML files."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from storm_on_spark.api.config import KNOWN_PREFIXES
from storm_on_spark.api.errors import ConfigError

_MAX_FILE_BYTES = 1 << 20
_TYPED = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "float", "int", "null"))


def parse_value(text: str) -> Any:
    """Returns the value of `-c KEY=VALUE`, typed like a YAML scalar, list or mapping; else it is a string.

    Unlike in a YAML file, a colon, a number sign or a date needs no quotes: most such values are paths.

    >>> [parse_value(text) for text in ("30", "0.5", "true", "null", "[a, 1]", "'30'", "my notes: a #1.txt")]
    [30, 0.5, True, None, ['a', 1], '30', 'my notes: a #1.txt']
    """
    stripped = text.strip()
    if stripped[:1] in ("[", "{", "'", '"'):
        return yaml.load(stripped, _Loader)  # noqa: S506 # a subclass of SafeLoader
    try:
        node = yaml.compose(stripped, _Loader)
    except yaml.YAMLError:
        return text
    # A number in base 60, such as 1:30, is surprising in YAML 1.1 and gone from 1.2.
    if not isinstance(node, yaml.ScalarNode) or node.value != stripped or ":" in stripped:
        return text
    return yaml.safe_load(stripped) if node.tag in _TYPED else text


def parse_pair(text: str) -> tuple[str, Any]:
    """Returns key and value of one `-c`.

    Raises:
        ConfigError: there is no `=`, no key, or the value is a list or quoted string that doesn't end.
    """
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ConfigError(f"-c takes KEY=VALUE, such as topology.workers=2, not {text!r}")
    try:
        return key, parse_value(value)
    except yaml.YAMLError as error:
        raise ConfigError(f"-c {key}: {_problem(error)} in {value!r}", key=key) from error


def read_file(path: Path) -> dict[str, Any]:
    """Returns the configuration in a YAML file.

    Raises:
        ConfigError: it can't be read, is no mapping from keys to values, or is larger than 1 MiB.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}") from error
    if len(content) > _MAX_FILE_BYTES:
        raise ConfigError(f"{path} is larger than {_MAX_FILE_BYTES} bytes: that is no configuration file")
    try:
        found = yaml.load(content, _Loader)  # noqa: S506 # a subclass of SafeLoader
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}{_position(error)}: {_problem(error)}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigError(f"{path} must hold keys with values, one per line, not a {type(found).__name__}")
    for key, value in found.items():
        if isinstance(value, dict) and f"{key}." in KNOWN_PREFIXES and value:
            first = next(iter(value))
            raise ConfigError(f"{path}: keys are written in full: {key}.{first}: {value[first]}", key=key)
    return found


def merged(files: Iterable[Path], pairs: Iterable[str]) -> dict[str, Any]:
    """Returns all of it: later files win over earlier ones, and `-c` over files."""
    conf: dict[str, Any] = {}
    for path in files:
        conf |= read_file(path)
    return conf | dict(parse_pair(pair) for pair in pairs)


def spark_conf(conf: Mapping[str, Any]) -> dict[str, str]:
    """Returns the settings that are Spark's, as Spark wants them.

    >>> spark_conf({"spark.ui.enabled": True, "topology.workers": 2, "spark.driver.memory": "4g"})
    {'spark.ui.enabled': 'true', 'spark.driver.memory': '4g'}
    """
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in conf.items()
        if key.startswith("spark.")
    }


class _Loader(yaml.SafeLoader):
    """Plain data only: no aliases, which can grow without bound, and no key twice."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call] # PyYAML's
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not supported", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} is there twice", problem_mark=key.start_mark)
            if isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _problem(error: Exception) -> str:
    return getattr(error, "problem", None) or str(error).splitlines()[0]


def _position(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
