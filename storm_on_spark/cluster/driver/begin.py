"""The first moments of a driver."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from storm_on_spark.cluster.driver.files import DriverSpec, ProcessFile, RunFolder
from storm_on_spark.runtime.processes.sessions import started_at, this_kernel


def begin() -> tuple[RunFolder, DriverSpec, ProcessFile]:
    """Writes this process down in the folder that the command line names, and returns what it is to run.

    Called before anything that takes time is imported: a supervisor that is killed when it has just started a driver,
    and is started again, looks for the file that is written here.
    """
    folder = RunFolder(Path(sys.argv[1]))
    # Held as long as this process lives, and by none that it starts.
    os.set_inheritable(int(sys.argv[2]), False)
    spec = folder.spec()
    process = process_file(spec)
    folder.write(process)
    return folder, spec, process


def process_file(spec: DriverSpec) -> ProcessFile:
    """Returns who this process is, and what it is allowed to run."""
    return ProcessFile(
        pid=os.getpid(),
        started=started_at(os.getpid()) or "",
        kernel=this_kernel(),
        assignment=spec.assignment,
        assignment_version=spec.assignment_version,
    )
