"""The harness's side of `preload.c`: builds and controls it."""

from __future__ import annotations

import errno
import mmap
import shutil
import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("preload.c")
_HEAD = struct.Struct("<qiIQQ")
_PREFIX_BYTES = 1024


class Preload:
    """Faults of the C library for the processes of one run.

    Args:
        folder: where library and control file go.
    """

    def __init__(self, folder: Path) -> None:
        library, control = folder / "preload.so", folder / "control"
        subprocess.run(
            [compiler() or "cc", "-shared", "-fPIC", "-O2", "-o", library, _SOURCE, "-ldl", "-pthread"], check=True
        )
        control.write_bytes(bytes(_HEAD.size + _PREFIX_BYTES))
        with control.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), 0)
        self.environment = {"LD_PRELOAD": str(library), "FAULTS_CONTROL": str(control)}
        """The environment that the processes need."""
        self.library = library

    def refuse_writes(self, under: Path) -> None:
        """Makes writes to files under a path fail with an I/O error from now on."""
        prefix = str(under.resolve()).encode() + b"/"
        # The prefix first: it counts as soon as there is an error number.
        self._page[_HEAD.size : _HEAD.size + len(prefix) + 1] = prefix + b"\0"
        self._set(write_errno=errno.EIO)

    def allow_writes(self) -> None:
        """Makes writes work again."""
        self._set(write_errno=0)

    def shift_wall_clock(self, seconds: int) -> None:
        """Shifts the wall clock by a number of seconds."""
        self._set(wall_offset_secs=seconds)

    @property
    def refused(self) -> int:
        """How many writes were refused so far."""
        return int(_HEAD.unpack_from(self._page)[3])

    @property
    def shifted(self) -> int:
        """How many readings of the wall clock were shifted so far."""
        return int(_HEAD.unpack_from(self._page)[4])

    def _set(self, *, wall_offset_secs: int | None = None, write_errno: int | None = None) -> None:
        # Each counter separately: the following ones are written by other processes.
        if wall_offset_secs is not None:
            struct.pack_into("<q", self._page, 0, wall_offset_secs)
        if write_errno is not None:
            struct.pack_into("<i", self._page, 8, write_errno)


def compiler() -> str | None:
    """Returns the C compiler, or None if there is none."""
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
