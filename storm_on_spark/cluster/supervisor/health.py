"""Storm's node health checks: scripts of a folder that say whether a machine is fit.

By Storm's rules a script says that it is not when it exits with another code than 0 and prints a line that begins with
ERROR, or when it takes too long. Another code alone means that the script doesn't work, which says nothing of the
machine. A script that can't be run counts as a failure, as in Storm.

Scripts run as the user of the supervisor, without a shell. So only scripts that no other user can write are run.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import stat
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.text.printable import printable

_MOST_BYTES: Final = 1 << 16
"""Of what a script prints; the rest is not looked at."""
_MOST_SCRIPTS: Final = 100
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Result = Literal["success", "failed", "timeout", "failed_with_exit_code"]


@dataclass(frozen=True)
class HealthSettings(Settings):
    """Where the scripts are, and how long they may take."""

    folder: Annotated[str | None, Config.STORM_HEALTH_CHECK_DIR]
    timeout_ms: Annotated[int, Config.STORM_HEALTH_CHECK_TIMEOUT_MS]
    fail_on_timeouts: Annotated[bool, Config.STORM_HEALTH_CHECK_FAIL_ON_TIMEOUTS]


@dataclass(frozen=True)
class Checked:
    """What a script said."""

    script: str
    """Its name."""
    result: Result
    said: str = ""
    """Its line that begins with ERROR, or why it was not run."""


def check_health(settings: HealthSettings) -> tuple[Checked, ...]:
    """Runs all scripts, one after the other; none where no folder is named.

    Args:
        settings: of the machine.
    """
    if settings.folder is None:
        return ()
    folder = Path(settings.folder)
    try:
        _check_owner(folder)
        names = sorted(path for path in folder.iterdir() if path.is_file() and os.access(path, os.X_OK))
    except OSError as error:
        return (Checked(folder.name, "failed_with_exit_code", _told(error)),)
    return tuple(_run(path, settings.timeout_ms / 1e3) for path in names[:_MOST_SCRIPTS])


def why_unhealthy(checked: Sequence[Checked], *, fail_on_timeouts: bool = True) -> str:
    """Returns why a machine is not fit; empty if it is.

    Example:
        >>> why_unhealthy([Checked("disk", "success"), Checked("net", "failed", "ERROR no route")])
        'net: failed (ERROR no route)'
        >>> why_unhealthy([Checked("slow", "timeout")], fail_on_timeouts=False)
        ''
    """
    bad = [each for each in checked if each.result != "success" and (fail_on_timeouts or each.result != "timeout")]
    return "; ".join(f"{each.script}: {each.result}{f' ({each.said})' if each.said else ''}" for each in bad)[:1000]


def _check_owner(path: Path) -> None:
    """Refuses what another user could have written.

    Raises:
        PermissionError: another user could.
    """
    found = path.stat()
    if found.st_uid not in (0, os.getuid()) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(0, f"{path.name} must belong to root or to this user, and others must not write it")


def _run(path: Path, secs: float) -> Checked:
    try:
        _check_owner(path)
        # In its own session, so that its children end with it.
        process = subprocess.Popen(
            [os.fspath(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=path.parent,
            # Not the supervisor's environment, which may hold secrets.
            env={"PATH": _PATH, "LANG": "C.UTF-8"},
            start_new_session=True,
        )
    except OSError as error:
        return Checked(path.name, "failed_with_exit_code", _told(error))
    try:
        said = _output(process, time.monotonic() + secs)
    finally:
        # Its number is not given away before `wait`. Of one that has ended its children may be left.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    if said is None:
        return Checked(path.name, "timeout", f"no end within {secs:g} s")
    lines = said.decode("utf-8", "replace").splitlines()
    error_line = next((line for line in lines if line.startswith("ERROR")), None)
    if code != 0 and error_line is not None:
        return Checked(path.name, "failed", printable(error_line)[:200])
    return Checked(path.name, "success")


def _output(process: subprocess.Popen[bytes], deadline: float) -> bytes | None:
    """Returns what a script printed once it has ended; None if it hasn't by then."""
    assert process.stdout is not None
    said = bytearray()
    with process.stdout as out, selectors.DefaultSelector() as selector:
        os.set_blocking(out.fileno(), False)
        selector.register(out, selectors.EVENT_READ)
        open_end = True
        while not _ended(process) or open_end:
            left = deadline - time.monotonic()
            if left <= 0:
                return bytes(said) if _ended(process) else None
            if not open_end:
                time.sleep(min(0.02, left))
                continue
            if selector.select(min(0.1, left)):
                block = out.read(4096)
                open_end = bool(block)
                said += (block or b"")[: max(0, _MOST_BYTES - len(said))]
            elif _ended(process):
                # A child of the script keeps its output open.
                break
    return bytes(said)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Returns whether a script has ended; its process id stays its own."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _told(error: OSError) -> str:
    return printable(error.strerror or type(error).__name__)[:200]
