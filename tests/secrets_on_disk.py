"""Where a secret is on the disk of processes that run."""

from __future__ import annotations

import os
from pathlib import Path


def holding(folder: Path, secret: str) -> list[str]:
    """Returns the files below a folder that a secret is in, by their paths from there.

    What another process removes meanwhile holds nothing any more.
    """
    found = []
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            try:
                content = path.read_bytes() if path.is_file() else b""
            except FileNotFoundError:
                continue
            if secret.encode() in content:
                found.append(str(path.relative_to(folder)))
    return found
