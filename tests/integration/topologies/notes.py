"""Notes that components leave for the test: records appended to a file, whichever process they run in."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NOTES = "test.notes"
"""Configuration key: the folder of the notes."""


def note(conf: Mapping[str, Any], kind: str, *record: Any) -> None:
    """Appends a record; one `write` with O_APPEND, so records of different processes don't mix."""
    path = os.path.join(conf[NOTES], f"{kind}.notes")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, pickle.dumps(record))
    finally:
        os.close(descriptor)


def read_notes(folder: Path, kind: str) -> list[tuple[Any, ...]]:
    """Returns the records of one kind in the order in which they were written."""
    path = folder / f"{kind}.notes"
    data = io.BytesIO(path.read_bytes() if path.exists() else b"")
    records = []
    while data.tell() < len(data.getbuffer()):
        records.append(pickle.load(data))
    return records
