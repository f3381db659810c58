"""Becomes a child's command, after asking the kernel to end it with the process that started it.

A program of its own, because a process with threads can't safely run Python between fork and exec.
Arguments: id of the parent, then the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Executes `command` in place of this process; ends with code 127 if that is not possible."""
    with contextlib.suppress(AttributeError):  # not Linux
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    # Python ignores it; what it becomes should not.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 # a list, and no shell
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
