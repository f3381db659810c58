"""The process of a spout host that a keeper has started: `python -m ….remote.process PARENT PAGE`.

It calls the driver first, and imports what a spout host needs after that: the driver hears at once how the process
before it ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

from storm_on_spark.runtime.processes.diagnostics import breakpoints, log_levels, prints
from storm_on_spark.runtime.processes.ending.signals import ignore_interrupts
from storm_on_spark.runtime.processes.lines.calls import call
from storm_on_spark.runtime.processes.parent import die_with


def main() -> None:
    """Runs the host for the process that the first argument names; the second is for `holding`."""
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
    line, first = call(arguments)
    from storm_on_spark.runtime.spouts.remote.serving import serve
    from storm_on_spark.runtime.spouts.watching.holding import HostBreath

    serve(line, first, arguments["machine"], HostBreath(int(sys.argv[2])))


if __name__ == "__main__":
    main()
