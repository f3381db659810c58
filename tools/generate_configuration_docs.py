"""Writes docs/configuration.md from the registry of configuration keys; another file if one is named."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from storm_on_spark.api.config import FAMILIES, KEYS, KNOWN_PREFIXES, PROFILES, ConfigKey, Level

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"

HEAD = """\
# Configuration

<!-- Written by tools/generate_configuration_docs.py from storm_on_spark/api/config. Change it there. -->

A configuration is a mapping from keys to values. `Config` is a `dict` with Storm's names for the keys as constants
and Storm's setters; a plain `dict` does as well.

```python
from storm_on_spark import Config

conf = Config({Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 60, "my.greeting": "hello"})
conf.set_max_spout_pending(5000)
conf.validate()
```

## Where a value comes from

Later ones win:

1. the default of the key, as listed below, or what `topology.profile` says instead;
2. `conf` of the topology's module, or what is passed to `submit_topology` or `compile_topology`;
3. `--conf FILE.yaml`, in the order of the files; then `-c KEY=VALUE`;
4. for keys set for a *component*: `get_component_configuration()` of the spout or bolt, then what its declarer sets
   (`set_bolt(...).add_configuration(...)`). They hold for that component alone.

`None` (`null` in YAML) always means the default. `storm-spark run` sets one default differently: `topology.fail.fast`
is true there, so that a mistake in a bolt ends the run with a message.

## What is checked

These prefixes are Storm's: {starts}.
A key that starts with one of them and is not known is an error that suggests the nearest known key. So is a value of
the wrong type. Keys of the [families](#families-of-keys) below load with a warning that they have no effect. Every
other key is your own: it passes unchecked, and `open` and `prepare` receive it. Keys that start with `spark.` are given
to Spark by the command line (`-c spark.driver.memory=4g`).

Every known key has a level:

- **honoured**: it does what it does in Storm, or what is written here;
- **planned**: it is checked and has *no effect yet*, because what it belongs to is still to come;
- **accepted**: it is checked and has *no effect*, because there is nothing here that it could act on. Storm's
  configuration files can be used as they are.

`storm-spark config` prints the same list; `storm-spark config --json` for programs.
"""

SCOPES = """\
The last column says whose configuration has a key:

- **topology**: that of a topology, as above; **component** says that a spout or bolt may have a value of its own.
- **cluster**: that of Nimbuses, supervisors, Pacemakers and the commands that ask them, by their own `-c` and `--conf`.
  A file may have both kinds: `submit` sends a topology's keys with it, and leaves out those of the cluster.
- **streams**: that of `xd-singlenode`, admins and containers, in the same way.
"""


def page() -> str:
    """Returns the text of the page."""
    starts = ", ".join(f"`{prefix}`" for prefix in KNOWN_PREFIXES)
    parts = [HEAD.replace("{starts}", starts)]
    honoured = [key for key in KEYS.values() if key.level is Level.HONOURED]
    parts.append("## Keys that work\n")
    parts.append(SCOPES)
    parts += ["\n".join(rows(honoured, with_scope=True)), ""]
    parts.append("## What the profiles set\n")
    parts.append("`topology.profile` sets these keys where nobody else does; a key that you set counts, whatever the")
    parts.append("profile is. [Three profiles](performance.md#three-profiles) says when to take which.\n")
    parts += [*profiles(), ""]
    parts.append("## Keys without effect so far\n")
    parts += sections(Level.PLANNED)
    parts.append("## Keys that have nothing to act on here\n")
    parts += sections(Level.ACCEPTED)
    parts.append("## Families of keys\n")
    parts.append("All keys that start like this are Storm's, too. They are accepted unchecked, and a topology")
    parts.append("that sets one gets a warning that it has no effect.\n")
    parts += ["| starts with | why |", "|---|---|"]
    parts += [f"| `{prefix}` | {sentence(why)} |" for prefix, why in sorted(FAMILIES.items())]
    return "\n".join(parts) + "\n"


def profiles() -> Iterator[str]:
    """Yields the lines of a table: what each profile sets."""
    yield "| key | unset | " + " | ".join(f"`{profile}`" for profile in PROFILES) + " |"
    yield "|---|---|" + "---|" * len(PROFILES)
    for name in sorted({name for values in PROFILES.values() for name in values}):
        values = [KEYS[name].default, *(profile.get(name, KEYS[name].default) for profile in PROFILES.values())]
        yield f"| `{name}` | " + " | ".join("" if value is None else f"`{value}`" for value in values) + " |"


def sections(level: Level) -> Iterator[str]:
    """Yields the keys of a level, those that have the same reason together."""
    keys = sorted((key for key in KEYS.values() if key.level is level), key=lambda key: (key.why, key.name))
    for why, group in groupby(keys, key=lambda key: key.why):
        yield f"**{sentence(why)}**\n"
        yield "\n".join(rows(group, with_scope=False))
        yield ""


def rows(keys: Iterable[ConfigKey], *, with_scope: bool) -> Iterator[str]:
    """Yields a table."""
    yield "| key | default | value | meaning |" + (" set for |" if with_scope else "")
    yield "|---|---|---|---|" + ("---|" if with_scope else "")
    for key in keys:
        scope = f" {key.scope} |" if with_scope else ""
        yield f"| `{key.name}` | {default(key)} | {cell(str(key.type))} | {cell(key.doc)} |{scope}"


def default(key: ConfigKey) -> str:
    """Returns the default as it stands in a YAML file."""
    return "unset" if key.default is None else f"`{cell(json.dumps(key.default))}`"


def cell(text: str) -> str:
    """Returns text for a cell of a table."""
    return text.replace("|", "\\|")


def sentence(text: str) -> str:
    """Returns a reason as a sentence of its own."""
    return f"{text[0].upper()}{text[1:]}." if text[0].isalpha() else f"{text}."


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    target.write_text(page(), encoding="utf-8")
