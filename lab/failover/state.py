"""Reads the state of the load by Spark, in a process of its own: `python -m lab.failover.state CHECKPOINT OUT`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lab.faults.driver import read_state
from storm_on_spark.spark.session import local_session, stop_session


def main(checkpoint: str, out: str) -> int:
    """Writes it as JSON."""
    spark = local_session("local[2]")
    try:
        Path(out).write_text(json.dumps(read_state(spark, checkpoint)), "utf-8")
    finally:
        stop_session(spark)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
