"""How the latency of native PySpark is found: from when a line was written to the end of its micro-batch."""

from __future__ import annotations

import contextlib
import socket
import time

import numpy as np

from lab.benchmarks.contenders import native


def test_latency_counts_from_when_a_line_was_written() -> None:
    texts = [f"line {number}" for number in range(10)]
    before = time.time()
    with contextlib.closing(native.Feeder(texts, rate=2000)) as feeder:
        with socket.create_connection(("127.0.0.1", feeder.port)) as connection, connection.makefile() as lines:
            received = [lines.readline().rstrip() for _ in range(500)]
        feeder.wait()
        after = time.time()
        assert received == [texts[number % 10] for number in range(500)]
        written = [feeder.written_at(line) for line in range(500)]
    assert written == sorted(written)
    assert before <= written[0] < written[-1] <= after

    batch = {
        "timestamp": "1970-01-01T00:00:00.500Z",
        "durationMs": {"triggerExecution": 250},
        "sources": [{"startOffset": 9, "endOffset": "19"}],
    }
    found = native.latencies_of(batch, feeder)
    assert np.allclose(found, [1000 * (0.75 - when) for when in written[10:20]])


def test_the_first_batch_begins_with_the_first_line() -> None:
    class Known:
        def written_at(self, line: int) -> float:
            return float(line)

    batch = {
        "timestamp": "1970-01-01T00:00:04.000Z",
        "durationMs": {"triggerExecution": 0},
        "sources": [{"startOffset": None, "endOffset": 2}],
    }
    assert native.latencies_of(batch, Known()).tolist() == [4000, 3000, 2000]
