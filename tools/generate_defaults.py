"""Writes conf/defaults.yaml from the registry of configuration keys; another file if one is named."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from storm_on_spark.api.config import KEYS, ConfigKey, Level

FILE = Path(__file__).parent.parent / "conf" / "defaults.yaml"

HEAD = """\
# Every configuration key with its default: `null` means unset.
# Written by tools/generate_defaults.py from storm_on_spark/api/config. Nothing reads this file: copy what you change
# into a file of your own and give it with `storm-spark run --conf FILE.yaml`; conf/example.yaml shows one.
"""

TITLES = {
    Level.HONOURED: "Keys that work",
    Level.PLANNED: "Keys without effect so far",
    Level.ACCEPTED: "Keys that have nothing to act on here",
}


def text() -> str:
    """Returns the text of the file."""
    parts = [HEAD]
    for level, title in TITLES.items():
        parts.append(f"\n# --- {title} ---\n")
        keys = [key for key in KEYS.values() if key.level is level]
        parts += [line for key in keys for line in entry(key)]
    return "\n".join(parts)


def entry(key: ConfigKey) -> Iterator[str]:
    """Yields what is said about a key, and its default."""
    doc = f"{key.doc} ({key.type}{'; component' if key.component else ''})"
    yield "\n".join(wrap(doc, 118, initial_indent="# ", subsequent_indent="# "))
    value = list(key.default) if isinstance(key.default, tuple) else key.default
    # JSON is YAML too, and stays on one line.
    yield f"{key.name}: {json.dumps(value)}\n"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    target.write_text(text(), encoding="utf-8")
