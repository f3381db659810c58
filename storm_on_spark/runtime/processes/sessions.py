"""Processes by session: all that one process started, in any process group.

Spark's Python daemon makes its own process group, so a group does not contain all processes of a driver; a session
does. Everything is read from `/proc`; without it, only the leader of a session is known.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")


def this_kernel() -> str:
    """Returns an id of the machine, its boot and the process table that this process sees; empty if unknown.

    Processes with the same id see each other's process ids and locks.
    """
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


def started_at(pid: int) -> str | None:
    """Returns when a living process was started, in the kernel's ticks. With the process id it identifies a process.

    Example:
        >>> started_at(os.getpid()) == started_at(os.getpid()) != None
        True
    """
    fields = _stat(pid)
    if fields is None:
        return "" if not _PROC.is_dir() and _exists(pid) else None
    return None if fields[0] in "ZX" else fields[19]


def session_members(session: int, leader_started: str | None = None) -> list[int]:
    """Returns the ids of the living processes of a session.

    Args:
        session: id of its leader, which may have ended.
        leader_started: when the leader was started. The kernel uses an id again only when nothing is left of its
            session; this tells a new session with the same number from the old one.

    Example:
        >>> os.getpid() in session_members(os.getsid(0))
        True
    """
    now = started_at(session)
    if leader_started is not None and now is not None and now != leader_started:
        return []
    if not _PROC.is_dir():
        return [session] if now is not None else []
    found = []
    for entry in os.scandir(_PROC):
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields is not None and fields[0] not in "ZX" and fields[3] == str(session):
                found.append(int(entry.name))
    return sorted(found)


def is_on_a_command_line(path: Path) -> bool:
    """Returns whether the arguments of a living process name `path` or something in it; False if they can't be read."""
    return any(True for _ in _naming(path))


def kill_named(path: Path) -> None:
    """Kills the descendants of this process whose arguments name `path` or something in it, and their descendants."""
    ours = set(descendants(os.getpid()))
    for pid in _naming(path):
        if pid in ours:
            for each in (pid, *descendants(pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)


def _naming(path: Path) -> Iterator[int]:
    named = os.fsencode(path)
    for entry in _PROC.glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to another user
            if named in entry.read_bytes():
                yield int(entry.parent.name)


def kill_session(session: int, leader_started: str | None = None) -> list[int]:
    """Kills the processes of a session by SIGKILL, the leader first; returns their ids.

    One that is started meanwhile may be left: ask again until there is none.
    """
    found = session_members(session, leader_started)
    for pid in sorted(found, key=lambda pid: pid != session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found


def descendants(pid: int) -> list[int]:
    """Returns the ids of the living descendants of a process.

    A process whose parent has ended belongs to the nearest ancestor that is a subreaper, or else to init.

    Example:
        >>> os.getpid() in descendants(os.getppid())
        True
    """
    children: dict[str, list[int]] = {}
    if not _PROC.is_dir():
        return []
    for entry in os.scandir(_PROC):
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields is not None and fields[0] not in "X":
                children.setdefault(fields[1], []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        more = children.pop(str(waiting.pop()), [])
        waiting += more
        found += more
    return sorted(each for each in found if started_at(each) is not None)


def kill_descendants(pid: int, session: int | None = None) -> list[int]:
    """Kills the descendants of a process by SIGKILL; returns their ids.

    One that is started meanwhile may be left: ask again until there is none.

    Args:
        pid: of the process.
        session: kill only those in this session; None for all.
    """
    found = descendants(pid)
    if session is not None:
        members = set(session_members(session))
        found = [each for each in found if each in members]
    for each in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    return found


def _stat(pid: int) -> list[str] | None:
    """Returns the fields of `/proc/PID/stat` from the state on."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    # The name is in parentheses and may contain anything, parentheses too.
    return text.rpartition(")")[2].split()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
