"""The commit times in a Delta table's log: the same measure for all writers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Commit:
    """A version of a table.

    Args:
        version: its number.
        at: when it was committed, in seconds since the epoch: the time of the log's file.
        files: the data files that it added, relative to the table.
        rows: how many these have.
    """

    version: int
    at: float
    files: tuple[str, ...]
    rows: int


def commits(table: Path, after: int = -1) -> list[Commit]:
    """Returns the commits after a version that added rows, in order."""
    found = []
    for path in sorted((table / "_delta_log").glob("*.json")):
        version = int(path.stem)
        if version <= after:
            continue
        actions = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
        added = [action["add"] for action in actions if "add" in action]
        if added:
            rows = sum(json.loads(add["stats"])["numRecords"] for add in added)
            found.append(Commit(version, path.stat().st_mtime, tuple(add["path"] for add in added), rows))
    return found
