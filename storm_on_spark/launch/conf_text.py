"""Configuration as text: `-c KEY=VALUE` and YAML files."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from storm_on_spark.api.config import KNOWN_PREFIXES, problems_of
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.launch.bounded_yaml import BoundedLoader, check_size

_MAX_FILE_BYTES = 1 << 20
_WHOLE = "config"
"""The key that may hold all of a file, if it is the only one."""
_MEMORY_KEYS = frozenset(("spark.driver.memory", "spark.executor.memory"))
_LEAST_MEMORY = 450 << 20
"""Spark refuses a JVM with less: one and a half times what it reserves for itself."""
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
        raise ConfigError(f"-c takes KEY=VALUE, such as topology.workers=2, not {_short(text)}")
    try:
        found = parse_value(value)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"-c {key}: {_problem(error)} in {_short(value)}", key=key) from error
    return key, found


def read_file(path: Path) -> dict[str, Any]:
    """Returns the configuration in a YAML file. A single key `config` may hold all of it, as in Storm and Flux.

    Args:
        path: the file.

    Raises:
        ConfigError: it can't be read, is not a mapping from keys to values, or is larger than 1 MiB.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}") from error
    if len(content) > _MAX_FILE_BYTES:
        raise ConfigError(f"{path} is larger than {_MAX_FILE_BYTES} bytes: that is not a configuration file")
    try:
        found, lines, inner = _loaded(content)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}{_position(error)}: {_problem(error)}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigError(f"{path} must hold keys with values, one per line, not a {type(found).__name__}")
    if list(found) == [_WHOLE] and (found[_WHOLE] is None or isinstance(found[_WHOLE], dict)):
        found, lines = found[_WHOLE] or {}, inner
    for key, value in found.items():
        if isinstance(value, dict) and f"{key}." in KNOWN_PREFIXES and value:
            first = next(iter(value))
            raise ConfigError(f"{path}:{lines[key]}: keys are written in full: {key}.{first}: {value[first]}", key=key)
    problems = [(key, problem) for key, value in found.items() for problem in problems_of({key: value})]
    if problems:
        raise ConfigError(
            "\n".join(f"{path}:{lines[key]}: {problem}" for key, problem in problems), key=str(problems[0][0])
        )
    checked: dict[str, Any] = found
    return checked


def merged(files: Iterable[Path], pairs: Iterable[str]) -> dict[str, Any]:
    """Returns all of it: later files win over earlier ones, and `-c` over files.

    Raises:
        ConfigError: a file or pair can't be read, or a key or value in it makes no sense; the message says where.
    """
    conf: dict[str, Any] = {}
    for path in files:
        conf |= read_file(path)
    given = dict(parse_pair(pair) for pair in pairs)
    problems = [(key, problem) for key, value in given.items() for problem in problems_of({key: value})]
    if problems:
        raise ConfigError("\n".join(f"-c {problem}" for _, problem in problems), key=problems[0][0])
    return conf | given


def spark_conf(conf: Mapping[str, Any]) -> dict[str, str]:
    """Returns the settings that are Spark's, as Spark wants them.

    >>> spark_conf({"spark.ui.enabled": True, "topology.workers": 2, "spark.driver.memory": "4g"})
    {'spark.ui.enabled': 'true', 'spark.driver.memory': '4g'}
    """
    found = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in conf.items()
        if key.startswith("spark.")
    }
    for key in _MEMORY_KEYS & found.keys():
        _check_memory(key, found[key])
    return found


def _check_memory(key: str, text: str) -> None:
    """Checks an amount of memory, which Java would refuse in words of its own.

    Raises:
        ConfigError: it is not an amount, or one with which Spark does not start.
    """
    found = re.fullmatch(r"(\d{1,15})([kmgt]?)b?", text.strip().lower())
    # Spark takes a number without a unit for MiB.
    size = -1 if found is None else int(found[1]) << {"k": 10, "": 20, "m": 20, "g": 30, "t": 40}[found[2]]
    if size < _LEAST_MEMORY:
        raise ConfigError(f"{key} must be an amount of at least 450m, such as 2g, not {_short(text)}", key=key)


class _Loader(BoundedLoader):
    """No key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} is there twice", problem_mark=key.start_mark)
            if isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _loaded(content: bytes) -> tuple[Any, dict[Any, int], dict[Any, int]]:
    """Returns what YAML text says, the line of each key at its top, and of each key below `config`."""
    loader = _Loader(content)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, {}, {}
        check_size(node)
        found = loader.construct_document(node)
        below = node.value[0][1] if isinstance(node, yaml.MappingNode) and node.value else None
        whole = found.get(_WHOLE) if isinstance(found, dict) else None
        return found, _lines(found, node), _lines(whole, below)
    finally:
        loader.dispose()


def _lines(found: Any, node: yaml.Node | None) -> dict[Any, int]:
    """Returns the line of each key of a mapping."""
    if not isinstance(found, dict) or not isinstance(node, yaml.MappingNode):
        return {}
    # A key that is merged from elsewhere (<<) may be there twice: its own line is the last one.
    lines = {str(key.value): key.start_mark.line + 1 for key, _ in node.value}
    return dict(zip(found, lines.values(), strict=False))


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _problem(error: Exception) -> str:
    return getattr(error, "problem", None) or str(error).splitlines()[0]


def _position(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
