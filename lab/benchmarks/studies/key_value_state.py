"""What a get and a put in `KeyValueState` cost with many keys, in a process of its own and without Spark.

Usage: python -m lab.benchmarks.studies.key_value_state [KEYS] [BATCHES]

For each way to choose keys, one process holds the state in memory as a whole, as a small one is held, and another
has the memory of the default configuration; the state store is a folder. Figures are CPU time, which other work on the
changes that less. The table goes to standard output.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from storm_on_spark.runtime.state.keyvalue.state import DEFAULT_MEMORY, StoredState

_BATCH = 200_000
_ALL = 1 << 40


class Folder:
    """A state store of files: not in the memory of this process."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def _file(self, name: str, index: int) -> Path:
        return self._path / f"{name}.{index}"

    def get(self, name: str, index: int = 0) -> bytes | None:
        """Returns a value, or None."""
        file = self._file(name, index)
        return file.read_bytes() if file.exists() else None

    def put(self, name: str, value: bytes, index: int = 0) -> None:
        """Sets a value."""
        self._file(name, index).write_bytes(value)

    def remove(self, name: str, index: int = 0) -> None:
        """Removes a value, which may be none."""
        self._file(name, index).unlink(missing_ok=True)


def measure(memory: int, zipf: bool, keys: int, batches: int) -> dict[str, float]:
    """Returns CPU time of each tuple in µs, the process's memory in MB, and the CPU time of a start in s."""
    random = np.random.default_rng(3)
    with tempfile.TemporaryDirectory(prefix="key-value-state-") as folder:
        store, entries = Folder(folder), 0
        state = StoredState(memory)
        state.attach(store)

        def run(chosen: list[int]) -> None:
            nonlocal entries
            if state.looks_ahead:
                state.look_ahead(set(chosen))
            for key in chosen:
                state.put(key, state.get(key, 0) + 1)
            written = state.commit(store, entries)
            entries = entries if written is None else written.entries

        for first in range(0, keys, _BATCH):
            run(list(range(first, min(keys, first + _BATCH))))
        times = []
        for _ in range(batches):
            if zipf:  # with exponent 1, by the inverse of its distribution
                ranks = np.minimum(keys ** random.random(_BATCH), keys).astype(np.int64) - 1
                chosen = (ranks * 7919) % keys
            else:
                chosen = random.integers(0, keys, _BATCH)
            listed = chosen.tolist()
            before = time.process_time()
            run(listed)
            times.append(time.process_time() - before)
        status = Path("/proc/self/status").read_text(encoding="ascii")
        resident = int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
        again = StoredState(memory)
        before = time.process_time()
        again.attach(store)
        again.load(store, entries)
        start = time.process_time() - before
    settled = times[len(times) // 3 :]
    return {"us": sum(settled) / len(settled) / _BATCH * 1e6, "mb": resident / 1024, "start": start}


def main(arguments: list[str]) -> None:
    """Measures all and prints the table; with four arguments, one line of it as JSON."""
    if len(arguments) == 4:
        memory, zipf, keys, batches = map(int, arguments)
        print(json.dumps(measure(memory, bool(zipf), keys, batches)))
        return
    keys, batches = (*map(int, arguments), *(10_000_000, 15)[len(arguments) :])
    print(f"| {keys:,} integer keys | µs a tuple | MB of the process | start, s |\n|---|---|---|---|")
    for zipf, name in ((1, "Zipf"), (0, "uniform")):
        for memory, where in ((_ALL, "all in memory"), (DEFAULT_MEMORY, f"{DEFAULT_MEMORY >> 20} MB")):
            command = [
                sys.executable,
                "-m",
                "lab.benchmarks.studies.key_value_state",
                *map(str, (memory, zipf, keys, batches)),
            ]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout)
            print(f"| {name}, {where} | {found['us']:.2f} | {found['mb']:.0f} | {found['start']:.2f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
