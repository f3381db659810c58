"""Artifacts, the files that a topology's code consists of: their names, bounds and SHA-256.

Checking and using are one step. What is verified is a private copy or the very bytes that are returned, so an attacker
changing a file between the two gains nothing for an attacker who can write to the folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, Final, Protocol

from storm_on_spark.cluster.errors import ChecksumError, CodeError
from storm_on_spark.cluster.records import ArtifactInfo, CodeManifest

CODE: Final = "code.zip"
TOPOLOGY: Final = "topology.json"
CONF: Final = "conf.json"
PLAN: Final = "plan.json"
REQUIREMENTS: Final = "requirements.txt"

MAX_BYTES: Final = {CODE: 256 << 20, TOPOLOGY: 1 << 20, CONF: 1 << 20, PLAN: 16 << 20, REQUIREMENTS: 1 << 20}
"""The artifacts that there are, and the most bytes that each may have."""
REQUIRED: Final = (CODE, TOPOLOGY, CONF)

_BLOCK: Final = 1 << 20


class _Writable(Protocol):
    def write(self, data: bytes, /) -> Any: ...


def check_topology_id(topology_id: str) -> str:
    """Returns `topology_id` if it can be the name of a folder and part of a URL; ids come from outside.

    Raises:
        CodeError: it can't.

    Example:
        >>> check_topology_id("word-count-1-1700000000")
        'word-count-1-1700000000'
        >>> check_topology_id("../word-count")
        Traceback (most recent call last):
        ...
        storm_on_spark.cluster.errors.CodeError: '../word-count' can't be the id of a topology: it has 1 to 200 \
letters, digits, '-', '_' and '.', no '.' in front
    """
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}", topology_id):
        raise CodeError(
            f"{topology_id[:220]!r} can't be the id of a topology: it has 1 to 200 letters, digits, "
            "'-', '_' and '.', no '.' in front"
        )
    return topology_id


def check_artifact(info: ArtifactInfo, where: str) -> ArtifactInfo:
    """Returns `info` if it can describe an artifact; manifests come from outside.

    Raises:
        CodeError: there is no artifact of that name, it is too large, or its checksum is none.
    """
    limit = MAX_BYTES.get(info.name)
    if limit is None:
        raise CodeError(f"{where}: there is no artifact {info.name[:100]!r}; there are {', '.join(MAX_BYTES)}")
    if not 0 <= info.size <= limit:
        raise CodeError(f"{where}: {info.name} has {info.size:,} bytes; at most {limit:,} are allowed")
    if not re.fullmatch(r"[0-9a-f]{64}", info.sha256):
        raise CodeError(f"{where}: {info.sha256[:80]!r} of {info.name} is not a SHA-256")
    return info


def check_artifacts(artifacts: Iterable[ArtifactInfo], where: str) -> tuple[ArtifactInfo, ...]:
    """Returns `artifacts` if together they can be a topology's code.

    Raises:
        CodeError: one is wrong, there twice, or missing.
    """
    found = tuple(check_artifact(info, where) for info in artifacts)
    names = [info.name for info in found]
    if len(set(names)) != len(names):
        raise CodeError(f"{where}: an artifact is there twice: {', '.join(sorted(names))}")
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise CodeError(f"{where}: without {' and '.join(missing)} it is not a topology's code")
    return found


def artifacts_of(folder: Path) -> tuple[ArtifactInfo, ...]:
    """Returns the artifacts in a folder, as they are now, sorted by name.

    Raises:
        CodeError: one is missing, too large, or no regular file.
    """
    found = [artifact_of(folder / name) for name in sorted(MAX_BYTES) if os.path.lexists(folder / name)]
    return check_artifacts(found, str(folder))


def artifact_of(path: Path) -> ArtifactInfo:
    """Returns name, size and SHA-256 of a file.

    Raises:
        CodeError: there is no artifact of that name, it is too large, or no regular file.
    """
    limit = MAX_BYTES.get(path.name)
    if limit is None:
        raise CodeError(f"there is no artifact {path.name!r}; there are {', '.join(MAX_BYTES)}")
    with open_regular(path) as file:
        size, sha256 = _pump(file, None, limit, path)
    return ArtifactInfo(name=path.name, size=size, sha256=sha256)


def verify(manifest: CodeManifest, folder: Path) -> None:
    """Checks that a folder holds what a manifest says.

    It proves something about this moment only: what uses an artifact afterwards takes it through
    `read_verified` or `copy_verified`.

    Raises:
        CodeError: an artifact is missing, or the manifest itself is wrong.
        ChecksumError: one is something else.
    """
    for info in check_artifacts(manifest.artifacts, f"manifest of {manifest.topology_id}"):
        copy_verified(folder, info, None)


def read_verified(folder: Path, info: ArtifactInfo) -> bytes:
    """Returns the content of an artifact: the bytes that were checked.

    Raises:
        CodeError: it isn't there.
        ChecksumError: it is something else.
    """
    import io

    copy = io.BytesIO()
    copy_verified(folder, info, copy)
    return copy.getvalue()


def copy_verified(folder: Path, info: ArtifactInfo, to: _Writable | None) -> None:
    """Copies an artifact, checking what is copied. What was written before an error must not be used.

    Args:
        folder: where the artifact is.
        info: what it must be.
        to: where it goes; with None it is only checked.

    Raises:
        CodeError: it isn't there.
        ChecksumError: it is something else.
    """
    check_artifact(info, str(folder))
    path = folder / info.name
    with open_regular(path) as file:
        size, sha256 = _pump(file, to, info.size, path)
    if (size, sha256) != (info.size, info.sha256):
        raise ChecksumError(
            f"{path}: {size:,} bytes with SHA-256 {sha256}; what was sent had {info.size:,} bytes with {info.sha256}"
        )


def open_regular(path: Path) -> IO[bytes]:
    """Opens a regular file for reading; a link in its place is not followed, a pipe does not block.

    Raises:
        CodeError: there is no such file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise CodeError(f"{path} can't be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CodeError(f"{path} is not a regular file")
    return os.fdopen(descriptor, "rb")


def _pump(file: IO[bytes], to: _Writable | None, limit: int, path: Path) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    while block := file.read(_BLOCK):
        size += len(block)
        if size > limit:
            raise ChecksumError(f"{path}: more than the {limit:,} bytes that it may have")
        digest.update(block)
        if to is not None:
            to.write(block)
    return size, digest.hexdigest()
