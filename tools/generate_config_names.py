"""Writes storm_on_spark/api/config/names.py from keys.ini; another file if one is named."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from storm_on_spark.api.config import KEYS
from storm_on_spark.api.config.table import sections

FILE = Path(__file__).parent.parent / "storm_on_spark" / "api" / "config" / "names.py"
LINE_LENGTH = 120

HEAD = '''\
"""Names of the configuration keys, as constants: for editors and type checkers, and without a look at the key table.

Written by tools/generate_config_names.py from keys.ini. Where Storm has a key, the constant is named as in Storm.
"""

from __future__ import annotations

from typing import Final


class ConfigNames:
    """The names of all keys; [Config][storm_on_spark.api.Config] inherits them."""

'''


def lines() -> Iterator[str]:
    """Yields the constants."""
    for name, key in sorted((sections()[key].get("constant", in_capitals(key)), key) for key in KEYS):
        line = f'    {name}: Final = "{key}"\n'
        yield line if len(line) <= LINE_LENGTH + 1 else f'    {name}: Final = (\n        "{key}"\n    )\n'


def in_capitals(key: str) -> str:
    """Returns the constant of most keys."""
    return re.sub(r"[.-]", "_", key).upper()


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    target.write_text(HEAD + "".join(lines()), encoding="utf-8")
