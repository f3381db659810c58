"""How each process begins that a keeper has started: `python -m MODULE PARENT PAGE`, with its arguments on stdin.

Little is imported until the driver has been called: it hears at once how the process before this one ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

from storm_on_spark.runtime.processes.diagnostics import breakpoints, log_levels, prints
from storm_on_spark.runtime.processes.ending.signals import ignore_interrupts
from storm_on_spark.runtime.processes.lines.calls import call
from storm_on_spark.runtime.processes.lines.line import Line
from storm_on_spark.runtime.processes.parent import die_with


def begin() -> tuple[dict[str, Any], Line, bytes]:
    """Ties this process to its keeper, labels what it prints, and calls the driver's machine.

    Returns:
        What the keeper said (see `Place`), the connection, and the first message that came over it.
    """
    die_with(int(sys.argv[1]))
    ignore_interrupts()
    arguments = json.loads(sys.stdin.buffer.read())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout, sys.stderr = (
        prints.labelled(stream, arguments["mark"].encode()) for stream in (sys.stdout, sys.stderr)
    )
    breakpoints.pass_over()
    log_levels.follow()
    with contextlib.suppress(PermissionError):  # it leads a session, and so a group
        os.setpgid(0, 0)
    return arguments, *call(arguments)
