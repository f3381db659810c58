"""`python -m lab.benchmarks.studies.regression`: whether the hot paths got much slower. `make test` runs it.

Compares processor time within one run, so neither the machine's speed nor its other work matters: that of a word count
with all its processes against a plain Python loop that counts the same words, and of columnar bolts against per-tuple
ones. The limits leave room for other machines; exit code 1 says that one is passed.
"""

from __future__ import annotations

import collections
import json
import sys
import tempfile
import time
from pathlib import Path

from lab.benchmarks.cases import CASES, COLUMNAR, FULL, PER_TUPLE
from lab.benchmarks.contenders import Setup, ours
from lab.benchmarks.workloads.data import sentences, sentences_file
from storm_on_spark.spark.session import local_session, stop_session

_SECONDS, _WARM_UP = 4.0, 3.0

LIMITS = {"per-tuple over a Python loop": 60.0, "columnar over per-tuple": 0.75}
"""How often the processor time of the one is that of the other, at most."""


def loop_seconds_per_million() -> float:
    """Returns the processor time in which a plain loop counts the words of a million sentences."""
    texts = sentences()
    times = []
    for _ in range(3):
        counts: collections.Counter[str] = collections.Counter()
        began = time.process_time()
        for text in texts:
            for word in text.split():
                counts[word] += 1
        times.append(time.process_time() - began)
    return 1e6 * min(times) / len(texts)


def measure() -> dict[str, float]:
    """Returns the figures that `LIMITS` limits."""
    loop = loop_seconds_per_million()
    used = {}
    with tempfile.TemporaryDirectory(prefix="regression-") as folder:
        source = sentences_file(Path(folder) / "sentences.txt")
        spark = local_session()
        try:
            for name in (PER_TUPLE, COLUMNAR):
                own = Path(folder) / name
                own.mkdir()
                setup = Setup(source, own, time.monotonic(), _SECONDS, _WARM_UP, settle=0)
                result = ours.run_on(spark, CASES[name], setup)
                used[name] = result["phases"][FULL.name]["cpu_secs_per_million"]
        finally:
            stop_session(spark)
    return {
        "per-tuple over a Python loop": used[PER_TUPLE] / loop,
        "columnar over per-tuple": used[COLUMNAR] / used[PER_TUPLE],
    }


def main() -> int:
    """Measures, prints, and returns the exit code."""
    found = measure()
    print(json.dumps({name: {"ratio": round(found[name], 3), "limit": limit} for name, limit in LIMITS.items()}))
    return 0 if all(found[name] <= limit for name, limit in LIMITS.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
