"""A daemon of a scenario: it reaches Pacemakers through proxies that can be cut, and a Pacemaker's clock may be wrong.

    python -m lab.failover.daemon KIND CONF.json [MORE ...]

Everything else is `storm_on_spark.testing.simulated.daemon`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from lab.failover.routes import clock_of, install
from storm_on_spark.testing.simulated import daemon


def main(kind: str, conf_file: str, *more: str) -> int:
    """Runs until it is asked to end."""
    conf = json.loads(Path(conf_file).read_text("utf-8"))
    install(conf)
    if kind == "pacemaker":
        # The clock of the host, which log lines use too.
        time.time = clock_of(conf)
    return daemon.main(kind, conf_file, *more)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
