"""`storm-spark config`: the configuration keys."""

from __future__ import annotations

import difflib
import fnmatch
import json as jsonlib
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from storm_on_spark.api.config import KEYS, ConfigKey, Level, family_key
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors
from storm_on_spark.cli.shared.terminal import width
from storm_on_spark.launch.conf_text import merged

_INDENT = "    "


def _begun(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(key) for key in KEYS if key.startswith(begun)]


@click.command("config", short_help="List the configuration keys.")
@click.argument("pattern", required=False, shell_complete=_begun)
@click.option("--set", "only_set", is_flag=True, help="Only keys set by -c, --conf or a conf.yaml in this folder.")
@click.option("--honoured", is_flag=True, help="Only keys that have an effect.")
@options.configuration
@click.option("--json", is_flag=True, help="Print one JSON document.")
@options.debug
def command(
    pattern: str | None,
    only_set: bool,
    honoured: bool,
    pairs: tuple[str, ...],
    files: tuple[Path, ...],
    json: bool,
    debug: bool,
) -> None:
    """List the configuration keys with default, type and meaning.

    PATTERN is a part of the key, such as timeout, or has wildcards, such as 'topology.*.secs'.

    The level is honoured, planned (checked, but without effect so far), or accepted (checked, but there is nothing
    here that it could affect).
    """
    with reporting_errors(debug, json):
        here = Path(options.CONF_FILE)
        if only_set and not files and here.is_file():
            files = (here,)
        given = merged(files, pairs)
        keys = _matching(pattern, given)
        if only_set:
            keys = [key for key in keys if key.name in given]
        if honoured:
            keys = [key for key in keys if key.level is Level.HONOURED]
        if json:
            echo(jsonlib.dumps([described(key, given) for key in keys], indent=2))
        elif sys.stdout.isatty():
            for line in _lines(keys, given, width()):
                echo(line)
        else:
            for key in keys:
                value = _text(given[key.name]) if key.name in given else _default(key)
                echo(f"{key.name}\t{value}\t{key.type}\t{key.level.value}\t{_meaning(key)}\t{key.scope}")
        if not keys:
            echo("No such key is set." if only_set else "No such key has an effect.", err=True)


def described(key: ConfigKey, given: Mapping[str, Any] | None = None) -> dict[str, object]:
    """Returns everything known about `key` as a JSON object, with its value if it is set."""
    found = {
        "key": key.name,
        "default": key.default,
        "type": str(key.type),
        "level": key.level.value,
        "meaning": key.doc,
        "why": key.why,
        "component": key.component,
        "scope": key.scope,
    }
    return {**found, "value": given[key.name]} if given and key.name in given else found


def _matching(pattern: str | None, given: Mapping[str, Any]) -> list[ConfigKey]:
    outside = [key for name in given if name not in KEYS and (key := family_key(name))]
    keys = sorted((*KEYS.values(), *outside), key=lambda key: key.name)
    if pattern is None:
        return keys
    wanted = pattern.lower()
    found = [key for key in keys if fnmatch.fnmatchcase(key.name.lower(), f"*{wanted}*")]
    if not found and (key := family_key(pattern)):
        return [key]
    if not found:
        near = difflib.get_close_matches(wanted, KEYS, n=1)
        hint = f"; did you mean {near[0]}?" if near else "; `storm-spark config` lists all"
        raise ConfigError(f"no configuration key matches {pattern[:80]!r}{hint}")
    return found


def _lines(keys: Sequence[ConfigKey], given: Mapping[str, Any], columns: int) -> Iterator[str]:
    """Yields the keys for a terminal, grouped by their first word, each on its own line so that none is broken."""
    for group, members in groupby(keys, key=lambda key: key.name.partition(".")[0]):
        yield click.style(f"{group}.*", bold=True)
        for key in members:
            yield f"  {key.name}"
            if key.name in given:
                yield from _wrapped(f"= {_text(given[key.name])} (default: {_default(key) or 'none'})", columns)
            else:
                yield from _wrapped(f"= {_default(key) or 'none'}", columns)
            yield from _wrapped(f"{_meaning(key)} ({key.type}; {key.level.value}; {key.scope})", columns)
        yield ""


def _wrapped(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, max(columns, 40), initial_indent=_INDENT, subsequent_indent=_INDENT)


def _text(value: object) -> str:
    return jsonlib.dumps(value, default=str)


def _default(key: ConfigKey) -> str:
    return "" if key.default is None else jsonlib.dumps(key.default)


def _meaning(key: ConfigKey) -> str:
    return f"{key.doc} No effect: {key.why}." if key.why else key.doc
