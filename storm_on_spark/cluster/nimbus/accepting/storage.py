"""Where checkpoints go, and whether another machine would find them there."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

from storm_on_spark.api.config import Config
from storm_on_spark.api.text.lines import lines_of

_MOUNTS: Final = Path("/proc/self/mountinfo")
_LOCAL: Final = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "reiserfs", "overlay", "tmpfs", "ramfs", "vfat"}
)
"""Types of file systems that only one machine sees; what is not known may be anything."""


def checkpoint_of(topology_id: str, folder: str | None, local: Path) -> str:
    """Returns where the checkpoint of a topology goes that names no place of its own.

    Args:
        topology_id: its id.
        folder: of all checkpoints, as the Nimbus' configuration names it.
        local: the Nimbus' own folder for checkpoints, of use where all run on one machine.
    """
    return f"{folder.rstrip('/')}/{topology_id}" if folder else str(local / topology_id)


def warnings_of(checkpoint: str, hosts: Collection[str], mounts: str | None = None) -> tuple[str, ...]:
    r"""Returns what the client should know of the place of a checkpoint.

    Args:
        checkpoint: a directory, or a URI.
        hosts: of all supervisors.
        mounts: what `/proc/self/mountinfo` says; read for None.

    Example:
        >>> mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /shared rw - nfs4 nas:/storm rw"
        >>> warnings_of("/shared/counts", {"a", "b"}, mounts), warnings_of("/var/counts", {"a"}, mounts)
        ((), ())
        >>> print(warnings_of("/var/counts", {"a", "b"}, mounts)[0][:82])
        /var/counts, where its state goes, is on a disk of one machine (ext4), as it looks
    """
    parsed = urlparse(checkpoint)
    if parsed.scheme not in ("", "file") or len(hosts) < 2:
        return ()
    path = unquote(parsed.path) if parsed.scheme else checkpoint
    kind = file_system(path, _mounts() if mounts is None else mounts)
    if kind not in _LOCAL:
        return ()
    return (
        f"{path}, where its state goes, is on a disk of one machine ({kind}), as it looks from this Nimbus. When its "
        f"driver has to move to another of the {len(hosts)} hosts, it won't start there without that state. Name "
        f"storage that all hosts share: {Config.TOPOLOGY_CHECKPOINT_DIR} for this topology, "
        f"{Config.STORM_CHECKPOINT_DIR} of the Nimbuses for all",
    )


def file_system(path: str, mounts: str) -> str:
    r"""Returns the type of the file system of a path; empty if that can't be told.

    Args:
        path: absolute; it may not exist.
        mounts: in the format of `/proc/self/mountinfo` (`man 5 proc`).

    Example:
        >>> file_system("/mnt/a b/c", "1 0 8:1 / / rw - ext4 d rw\n2 1 0:9 / /mnt/a\\040b rw shared:1 - ceph m rw")
        'ceph'
    """
    best, found = -1, ""
    for line in lines_of(mounts):
        fields, dash, rest = line.partition(" - ")
        parts = fields.split(" ")
        if not dash or len(parts) < 5 or not rest:
            continue
        point = parts[4].encode().decode("unicode_escape")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        # Of two at one place the later one hides the other.
        if inside and len(point) >= best:
            best, found = len(point), rest.split()[0]
    return found


def _mounts() -> str:
    try:
        return _MOUNTS.read_text()
    except OSError:
        return ""
