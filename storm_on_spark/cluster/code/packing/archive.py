"""Archives of code: written so that the same files give the same bytes, read as if an attacker had made them."""

from __future__ import annotations

import os
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Final

from storm_on_spark.cluster.code.checksums import open_regular
from storm_on_spark.cluster.code.folders import make_private
from storm_on_spark.cluster.errors import CodeError

MAX_ENTRIES: Final = 20_000
MAX_FILE_BYTES: Final = 128 << 20
MAX_TOTAL_BYTES: Final = 512 << 20
"""Of all files together, unpacked."""
MAX_NAME_BYTES: Final = 1024
MAX_DEPTH: Final = 40

_BLOCK: Final = 1 << 18
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_DIRECTORY_BYTES: Final = MAX_ENTRIES * 256 + (1 << 20)
_END: Final = struct.Struct("<4s4H2LH")
_LOCATOR_BYTES: Final = 20
_DAMAGES: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
)
"""Exceptions of `zipfile` for files that are not archives."""


def write(path: Path, files: Mapping[str, Path | bytes]) -> None:
    """Writes an archive: sorted, without times, with no permission but that to be executed.

    Args:
        path: the archive; it must not be there yet.
        files: name in the archive -> where the file is, or its content.

    Raises:
        CodeError: a file can't be read, or has become too large.
    """
    with (
        os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive,
    ):
        for name, source in sorted(files.items()):
            executable = isinstance(source, Path) and os.access(source, os.X_OK)
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
            archive.writestr(info, _content(source) if isinstance(source, Path) else source)


def _content(path: Path) -> bytes:
    with open_regular(path) as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise CodeError(f"{path} has more than the {MAX_FILE_BYTES:,} bytes that a file may have")
    return content


def extract(file: IO[bytes], folder: Path, where: str) -> None:
    """Unpacks an archive that `write` made.

    It is read strictly: nothing before, after or between its parts that another reader of archives could see
    differently.

    Args:
        file: the archive; no other user may be able to change it meanwhile.
        folder: an empty folder to which no other user can write.
        where: what the archive is called in errors.

    Raises:
        CodeError: it is damaged or too large, or an entry is something else than a file with a name below `folder`.
    """
    _check_frame(file, where)
    try:
        with zipfile.ZipFile(file) as archive:
            members = checked_members(archive, where)
            for name, info in members.items():
                _extract_one(archive, info, folder / name)
    except _DAMAGES as error:
        raise CodeError(f"{where} is damaged: {error}") from error


def _extract_one(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> None:
    make_private(path.parent)
    if info.is_dir():
        path.mkdir(mode=0o700, exist_ok=True)
        return
    mode = 0o700 if info.external_attr >> 16 & stat.S_IXUSR else 0o600
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, mode), "wb") as to:
        for block in _blocks(archive, info):
            to.write(block)


def read_all(path: Path) -> dict[str, bytes]:
    """Returns the files of a wheel or a zip that a person made: name -> content.

    Raises:
        CodeError: as `extract`, which is stricter still.
    """
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            members = checked_members(archive, str(path))
            return {name: b"".join(_blocks(archive, info)) for name, info in members.items() if not info.is_dir()}
    except _DAMAGES as error:
        raise CodeError(f"{path} is not a readable archive: {error}") from error


def checked_members(archive: zipfile.ZipFile, where: str) -> dict[str, zipfile.ZipInfo]:
    """Returns the entries by name, folders without their slash.

    Raises:
        CodeError: an entry is not allowed, or there are too many, or too large ones.
    """
    infos = archive.infolist()
    if len(infos) > MAX_ENTRIES:
        raise CodeError(f"{where}: {len(infos):,} entries; at most {MAX_ENTRIES:,} are allowed")
    found: dict[str, zipfile.ZipInfo] = {}
    folded: dict[str, str] = {}
    total = 0
    for info in infos:
        problem = name_problem(info.orig_filename.removesuffix("/")) or _entry_problem(info)
        if problem is not None:
            raise CodeError(f"{where}: entry {info.orig_filename[:200]!r} {problem}")
        name = info.filename.removesuffix("/")
        # Two names that are one on a file system which does not tell them apart would overwrite each other.
        other = folded.setdefault(unicodedata.normalize("NFC", name).casefold(), name)
        if name in found or other != name:
            raise CodeError(f"{where}: entry {name!r} is there twice, or again as {other!r}")
        found[name] = info
        total += info.file_size
        if total > MAX_TOTAL_BYTES:
            raise CodeError(f"{where}: its files have more than {MAX_TOTAL_BYTES:,} bytes together")
    for name in found:
        for parent in _parents(name):
            if parent in found and not found[parent].is_dir():
                raise CodeError(f"{where}: entry {parent!r} is a file and the folder of {name!r}")
    return found


def name_problem(name: str) -> str | None:
    """Returns what is wrong with the name of an entry, or None.

    Example:
        >>> name_problem("package/module.py")
        >>> name_problem("package/../../.bashrc")
        'leaves its folder'
    """
    if name.startswith("/"):
        return "is an absolute path"
    parts = name.split("/")
    if ".." in parts:
        return "leaves its folder"
    if any(part in ("", ".") for part in parts):
        return "is not a plain path"
    if "\\" in name or any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        return "has a backslash or a control character in its name"
    if len(parts) > MAX_DEPTH or len(name.encode()) > MAX_NAME_BYTES or any(len(p.encode()) > 255 for p in parts):
        return "has too long a name"
    return None


def _entry_problem(info: zipfile.ZipInfo) -> str | None:
    # zipfile cuts a name at a NUL; what was checked must be what is used.
    if info.orig_filename != info.filename:
        return "has an ambiguous name"
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFDIR if info.is_dir() else stat.S_IFREG):
        return "is neither a file nor a folder: links, devices and the like are not allowed"
    if info.flag_bits & 0x1:
        return "is encrypted"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed by another method than deflate"
    if info.file_size > (0 if info.is_dir() else MAX_FILE_BYTES):
        return f"has {info.file_size:,} bytes; at most {MAX_FILE_BYTES:,} are allowed"
    return None


def _parents(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _blocks(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yields an entry's content; never more than its declared size, whose bounds were checked."""
    remaining = info.file_size
    with archive.open(info) as content:
        while block := content.read(_BLOCK):
            remaining -= len(block)
            if remaining < 0:
                raise zipfile.BadZipFile(f"{info.filename!r} has more bytes than it says")
            yield block
    if remaining:
        raise zipfile.BadZipFile(f"{info.filename!r} has fewer bytes than it says")


def _check_frame(file: IO[bytes], where: str) -> None:
    """Checks that a file is one archive from its first byte to its last, whose directory may be read into memory."""
    size = file.seek(0, os.SEEK_END)
    tail = _END.size + _LOCATOR_BYTES
    file.seek(max(0, size - tail))
    last = file.read(tail)
    if len(last) >= _END.size:
        magic, disk, start, here, entries, length, offset, comment = _END.unpack(last[-_END.size :])
        whole = (magic, disk, start, here, comment) == (b"PK\5\6", 0, 0, entries, 0)
        zip64 = last[: -_END.size].startswith(b"PK\6\7")
        if whole and not zip64 and offset + length + _END.size == size and length <= _DIRECTORY_BYTES:
            file.seek(0)
            return
    raise CodeError(f"{where} is not an archive that packing a topology makes, or it is damaged")
