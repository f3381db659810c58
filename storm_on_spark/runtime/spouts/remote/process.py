"""The process of a spout host that a keeper has started: `python -m ….remote.process PARENT PAGE`.

It calls the driver first, and imports what a spout host needs after that.
"""

from __future__ import annotations

import sys

from storm_on_spark.runtime.spouts.remote.kept import begin


def main() -> None:
    """Runs the host for the process that the first argument names; the second is for `holding`."""
    arguments, line, first = begin()
    from storm_on_spark.runtime.spouts.remote.serving import serve
    from storm_on_spark.runtime.spouts.watching.holding import HostBreath

    serve(line, first, arguments["machine"], HostBreath(int(sys.argv[2])))


if __name__ == "__main__":
    main()
