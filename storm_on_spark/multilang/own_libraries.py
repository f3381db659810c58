"""The libraries by which a child speaks multilang, `storm.py`, `storm.js` and `storm.rb`, where its code brings none.

With Storm they come in its jars, so a component's folder often lacks them. A component finds its own first: in its
folder, or wherever its language looks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).with_name("libraries")
_QUOTED: Final = str.maketrans({"\\": "\\\\", '"': '\\"'})


def with_libraries(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a child, with what has Python, Node and Ruby look for the libraries at last."""
    found = dict(environment)
    node = str(_FOLDER / "node" / "found.js").translate(_QUOTED)
    for name, separator, value in (
        ("PYTHONPATH", os.pathsep, str(_FOLDER / "python")),
        ("NODE_OPTIONS", " ", f'--require "{node}"'),
        ("RUBYLIB", os.pathsep, str(_FOLDER / "ruby")),
        ("RUBYOPT", " ", "-rstorm_found"),
    ):
        found[name] = separator.join(filter(None, [found.get(name), value]))
    return found
