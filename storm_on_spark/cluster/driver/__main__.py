"""`python -m storm_on_spark.cluster.driver FOLDER LOCK`: started by a supervisor."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from storm_on_spark.cluster.driver.files import ProcessFile, RunFolder
from storm_on_spark.runtime.processes import started_at, this_kernel


def main() -> None:
    """Says who runs here before anything else, which a supervisor that was killed meanwhile looks for."""
    folder = RunFolder(Path(sys.argv[1]))
    # Held as long as this process lives, and by none that it starts.
    os.set_inheritable(int(sys.argv[2]), False)
    spec = folder.spec()
    process = ProcessFile(
        pid=os.getpid(),
        started=started_at(os.getpid()) or "",
        kernel=this_kernel(),
        assignment=spec.assignment,
        assignment_version=spec.assignment_version,
    )
    folder.write(process)

    from storm_on_spark.cluster.driver.main import Driver

    Driver(folder, spec, process).run()


if __name__ == "__main__":
    main()
