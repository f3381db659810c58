"""A simulated power failure: the content of a folder on the disk afterwards.

`preload.c` records the data that the processes of a run force to the disk. Anything else may be on the disk or not:
files may be missing, whole, truncated, empty, or with zeros in place of data. The copy made here decides at random for
each of them.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

_AT_ONCE = 200


@dataclass
class Loss:
    """The losses of a power failure."""

    kept: int = 0
    """Files that were forced to the disk, all of them."""
    gone: list[str] = field(default_factory=list)
    """Files of which not even the name was kept."""
    torn: list[str] = field(default_factory=list)
    """Files that lost some of their bytes."""

    def __str__(self) -> str:
        return f"{len(self.gone)} files gone, {len(self.torn)} torn, {self.kept} whole"


class Synced:
    """The data that was forced to the disk.

    Args:
        notes: the file that `preload.c` writes.
        folder: of which files it writes.
    """

    def __init__(self, notes: Path, folder: Path) -> None:
        self._notes = notes
        self._folder = folder
        self.environment = {"FAULTS_SYNCS": str(notes), "FAULTS_SYNCED": str(folder)}
        """The environment that the processes need, in addition to the library."""

    def lose_power(self, rng: random.Random) -> Loss:
        """Replaces the folder with the state on the disk after a power failure; no process may use it.

        Raises:
            OSError: it can't be copied.
        """
        sizes, names = self._read()
        copy, loss = self._folder.with_name("after-power-loss"), Loss()
        for path, inode, born, size in _files(self._folder):
            relative = path.relative_to(self._folder)
            known = min(size, sizes.get((inode, born), 0))
            named = (inode, born, str(path)) in names
            target = copy / relative
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not named and rng.random() < 1 / 2:
                loss.gone.append(str(relative))
                continue
            data = path.read_bytes()
            left = data if known == size else data[:known] + _rest(data[known:], rng)
            target.write_bytes(left)
            target.chmod(0o600)
            if left != data:
                loss.torn.append(str(relative))
            elif named and known == size:
                loss.kept += 1
        for path in self._folder.rglob("*"):
            if path.is_dir():
                (copy / path.relative_to(self._folder)).mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.rmtree(self._folder)
        copy.rename(self._folder)
        # All present files are on the disk.
        with self._notes.open("w") as file:
            for path, inode, born, size in _files(self._folder):
                file.write(f"{inode} {born} {size} 1 {path}\n")
        return loss

    def _read(self) -> tuple[dict[tuple[int, int], int], set[tuple[int, int, str]]]:
        """Returns the synced length of each file, and the synced names."""
        sizes: dict[tuple[int, int], int] = {}
        names: set[tuple[int, int, str]] = set()
        for line in filter(None, self._notes.read_text().split("\n")):
            inode, born, size, named, path = line.split(" ", 4)
            file = int(inode), int(born)
            sizes[file] = max(sizes.get(file, 0), int(size))
            if named == "1":
                names.add((*file, path))
        return sizes, names


def _rest(data: bytes, rng: random.Random) -> bytes:
    """Returns a possible state on the disk of bytes that were not forced there."""
    cut = rng.randrange(len(data) + 1)
    choices = (data, b"", bytes(len(data)), data[:cut], data[:cut] + bytes(len(data) - cut), bytes(cut) + data[cut:])
    return rng.choice(choices)


def _files(folder: Path) -> list[tuple[Path, int, int, int]]:
    """Returns path, inode, time of birth in ns and size of all files; Python 3.11 doesn't know the birth."""
    paths = [str(path) for path in folder.rglob("*") if path.is_file()]
    found = []
    for start in range(0, len(paths), _AT_ONCE):
        for line in _stat(paths[start : start + _AT_ONCE]):
            inode, born, size, path = line.split(" ", 3)
            seconds, _, fraction = born.partition(".")
            found.append((Path(path), int(inode), int(seconds) * 10**9 + int(fraction), int(size)))
    return sorted(found)


def _stat(paths: list[str]) -> list[str]:
    command = ["stat", "--format", "%i %.9W %s %n", *paths]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def knows_births(folder: Path) -> bool:
    """Whether the file system of `folder` says when a file was made: inodes are used again."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            (line,) = _stat([file.name])
    except (OSError, subprocess.CalledProcessError):
        return False
    return float(line.split(" ", 2)[1]) > 0
