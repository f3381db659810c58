"""What a micro-batch with windows costs: against the keys that change, and beside others' windows.

    python -m lab.benchmarks.studies.windows [--keys 1000000] [--json]

The first table is of a window of one minute that slides by one second, with a count and a sum for each of many keys. A
micro-batch is a second long here, and changes some of the keys. Bytes are what it writes to the state store.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from storm_on_spark.runtime.state.keyvalue.state import StoredState
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore
from storm_on_spark.testing import BoltTester, make_tuple
from storm_on_spark.windowing import BaseWindowedBolt, CountOf, Duration, SumOf

_FIELDS = ["key", "number"]
_MEMORY = 2 << 30
_AT_ONCE = 20_000
_MEASURED = 5


class Changed(BaseWindowedBolt):
    """Goes over what has changed."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        """Has seen nothing."""
        self.seen = 0

    def execute(self, window: Any) -> None:
        """Counts the changed keys."""
        self.seen += sum(1 for _ in window.changed)


class _Counted(MemoryStore):
    """A state store that counts the bytes that are put."""

    written = 0

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        self.written += len(value)
        super().put(name, value, index)


def costs(keys: int, changed: list[int]) -> list[dict[str, float]]:
    """Returns, for numbers of changed keys, what a micro-batch takes and writes."""
    window = Changed().with_window(Duration.minutes(1), Duration.seconds(1))
    tester = BoltTester(window.with_aggregate(by="key", number=CountOf(), total=SumOf("number")))
    state, store, entries = StoredState(_MEMORY), _Counted({}), 0
    tester.bolt.init_state(state)

    def micro_batch(some: range, *, seconds: int = 1) -> tuple[float, int]:
        nonlocal entries
        given = [make_tuple([key, 1], _FIELDS, roots=()) for key in some]
        state.attach(store)
        before, started = store.written, time.process_time()
        tester.execute(*given)
        tester.advance(seconds=seconds)
        written = state.commit(store, entries)
        if written is not None:
            entries = written.entries
        tester.collector.acked.clear()
        return time.process_time() - started, store.written - before

    # All come in the first second, so none leaves in those that are measured.
    for first in range(0, keys, _AT_ONCE):
        micro_batch(range(first, min(keys, first + _AT_ONCE)), seconds=0)
    micro_batch(range(0))
    rows = []
    for number in changed:
        found = [micro_batch(range(at * number, (at + 1) * number)) for at in range(_MEASURED)]
        seconds, size = (sorted(column)[_MEASURED // 2] for column in zip(*found, strict=True))
        rows.append({"changed": number, "ms": 1000 * seconds, "bytes": size, "held": len(state)})
    return rows


def main() -> int:
    """Prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="lab.benchmarks.studies.windows", description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = costs(options.keys, [100, 1000, 10_000, 100_000])
    if options.json:
        json.dump(rows, sys.stdout)
    else:
        for row in rows:
            print({name: round(value, 1) for name, value in row.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
