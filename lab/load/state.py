"""Reads the state of the load by Spark, in its own process: `python -m lab.load.state CHECKPOINT OUT`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from storm_on_spark.spark.session import local_session, stop_session
from storm_on_spark.spark.state import read_bolt_state, read_pending_roots


def read_state(spark: Any, checkpoint: str, *, windows: bool = False) -> dict[str, Any]:
    """Returns what the oracles look at, read from a checkpoint by Spark."""
    windowed = read_bolt_state(spark, checkpoint, "windows").values() if windows else ()
    counts = read_bolt_state(spark, checkpoint, "count").values()
    joins = read_bolt_state(spark, checkpoint, "join").values()
    return {
        "counts": [{str(key): value for key, value in state["counts"].items()} for state in counts],
        "sums": [{str(key): value for key, value in state["sums"].items()} for state in counts],
        "joined": sum(state["joined"] for state in joins),
        "alone": sum(state["alone"] for state in joins),
        "held": sum(len(state["held"]) for state in joins),
        "pending": len(read_pending_roots(spark, checkpoint)),
        "windowed": [{str(key): value for key, value in state["entered"].items()} for state in windowed],
    }


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
