"""A temporary folder whose last writers may still be ending."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_GRACE_SECS: Final = 10.0
_POLL_SECS: Final = 0.05


@contextlib.contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """Makes a temporary folder, and removes it at the end.

    Spark cancels the tasks of a failed query, but does not wait for its Python workers: one may write a file into the
    folder while it is being removed. So the removal is retried for some seconds.

    Args:
        prefix: of the folder's name.

    Raises:
        OSError: the folder can't be made or removed.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + _GRACE_SECS
    while True:
        try:
            shutil.rmtree(folder)
            return
        except OSError:
            # Others may remove things meanwhile, too.
            if not folder.exists():
                return
            if time.monotonic() > deadline:
                raise
        time.sleep(_POLL_SECS)
