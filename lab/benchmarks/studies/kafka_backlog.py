"""How fast a `KafkaSpout` works off a backlog, in real time and in micro-batches: a word count, in turn on one broker.

Usage: python -m lab.benchmarks.studies.kafka_backlog [--records N] [--rounds N]

A run takes from its first ack to its last; the start of Spark is left out.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab.benchmarks.workloads.data import read_sentences, sentences_file
from lab.benchmarks.workloads.topics import PARTITIONS, TOPIC, producer_of
from lab.benchmarks.workloads.topologies import PIPELINES
from storm_on_spark import Config, compile_topology
from storm_on_spark.connectors.kafka.server import KafkaServer
from storm_on_spark.connectors.kafka.topics import create
from storm_on_spark.spark.session import local_session, stop_session

_PROFILES = ("realtime", "", "throughput")
"""The second one is none: Spark reads, with the defaults."""
_AT_ONCE = 100_000
_SECS = 300.0


def rate(servers: str, records: int, profile: str) -> float:
    """Returns how many records a second one run works off, in this process.

    Raises:
        TimeoutError: it has not worked them off in five minutes.
    """
    conf: dict[str, object] = {Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS: 3600}
    if profile:
        conf[Config.TOPOLOGY_PROFILE] = profile
    with tempfile.TemporaryDirectory(prefix="backlog-") as name:
        folder = Path(name)
        topology = PIPELINES["word count, no table"](servers, TOPIC, folder / "table", _AT_ONCE)
        compiled = compile_topology(topology, conf)
        spark = local_session(conf=compiled.session_conf())
        try:
            query = compiled.start(spark, name="backlog", checkpoint=folder / "checkpoint")
            try:
                first = last = (0.0, 0)
                deadline = time.monotonic() + _SECS
                while last[1] < records:
                    acked, now = query.status_info().acked, time.monotonic()
                    if now > deadline:
                        raise TimeoutError(f"{acked:,} of {records:,} records after {_SECS:.0f} s")
                    if acked > last[1]:
                        last = now, acked
                        first = first if first[1] else last
                    time.sleep(0.05)
            finally:
                query.stop()
        finally:
            stop_session(spark)
    return (last[1] - first[1]) / (last[0] - first[0])


def main() -> int:
    """Prints the rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--records", type=int, default=500_000, help="in the topic (500,000)")
    parser.add_argument("--rounds", type=int, default=1, help="how often each profile runs (1)")
    parser.add_argument("--run", nargs=2, metavar=("SERVERS", "PROFILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(f"{rate(options.run[0], options.records, options.run[1]):.0f}")
        return 0
    found: dict[str, list[float]] = {profile: [] for profile in _PROFILES}
    with KafkaServer() as server, tempfile.TemporaryDirectory(prefix="backlog-") as name:
        servers = server.bootstrap_servers
        create(servers, {TOPIC: PARTITIONS})
        texts = [text.encode() for text in read_sentences(str(sentences_file(Path(name) / "sentences.txt")))[:1000]]
        producer = producer_of(servers, 20)
        for number in range(options.records):
            producer.send(TOPIC, texts[number % len(texts)], partition=number % PARTITIONS)
        producer.flush()
        producer.close()
        for _ in range(options.rounds):
            for profile in _PROFILES:
                command = [sys.executable, "-m", __spec__.name, "--records", str(options.records)]
                done = subprocess.run(
                    [*command, "--run", servers, profile], capture_output=True, text=True, check=False
                )
                if done.returncode:
                    sys.exit(done.stderr[-3000:])
                found[profile].append(float(done.stdout.split()[-1]))
                print(f"{profile or 'none':12} {found[profile][-1]:9,.0f} records/s", flush=True)
    ours = statistics.median(found["realtime"])
    for profile in _PROFILES[1:]:
        print(f"real time over {profile or 'none'}: {ours / statistics.median(found[profile]):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
