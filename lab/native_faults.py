"""Kills drivers, Python workers and a spout host under `KafkaSpout`: no record may be lost, or counted twice.

`python -m lab.native_faults` starts a real broker, fills a topic, and runs a topology that counts by key. Some records
fail once. The counts and sums of all keys must be exact at the end, and the consumer group's lag 0. It prints what it
did, in JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from storm_on_spark import BaseBasicBolt, BasicOutputCollector, FailedException, Fields, LocalCluster, TopologyBuilder
from storm_on_spark.api.context import TopologyContext
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.kafka import (
    KafkaRecord,
    KafkaSpout,
    KafkaSpoutConfig,
    RetryBackoff,
    SimpleRecordTranslator,
)
from storm_on_spark.connectors.kafka.server import KafkaServer
from storm_on_spark.connectors.kafka.topics import create

KEYS, PARTITIONS, FAILS_EVERY = 500, 4, 97
GROUP, TOPIC = "faults", "numbers"
_VICTIMS = ("driver", "worker", "driver", "spout host", "driver", "worker")
_WORDS = {"worker": "worker_daemon", "spout host": "spout_host"}
_STUCK_SECS = 180.0


def numbered(record: KafkaRecord) -> list[int]:
    """Returns key and number of a record."""
    return [int(record.value) % KEYS, int(record.value)]


class Count(BaseBasicBolt):
    """Counts and sums by key; some numbers fail when they come first."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins with nothing."""
        self.counts: dict[int, list[int]] = {}
        self.tried: set[int] = set()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Counts one."""
        key, number = tup["key"], tup["number"]
        if number % FAILS_EVERY == 0 and number not in self.tried:
            self.tried.add(number)
            raise FailedException("the first time")
        found = self.counts.setdefault(key, [0, 0])
        found[0] += 1
        found[1] += number
        collector.emit([key, *found])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares key, count and sum."""
        declarer.declare(Fields("key", "count", "sum"))


class Total(BaseBasicBolt):
    """Writes the counts of all keys to a file, now and then."""

    def __init__(self, out: str, messages: int) -> None:
        self.out, self.messages = out, messages

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins with nothing."""
        self.keys: dict[int, tuple[int, int]] = {}
        self.total, self.written = 0, 0.0

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        """Notes one count."""
        self.total += tup["count"] - self.keys.get(tup["key"], (0, 0))[0]
        self.keys[tup["key"]] = (tup["count"], tup["sum"])
        if self.total >= self.messages or time.time() - self.written > 0.2:
            self.written = time.time()
            new = Path(self.out).with_suffix(".new")
            new.write_text(json.dumps([self.total, self.keys]))
            new.rename(self.out)


def drive(folder: Path, servers: str, messages: int) -> None:
    """Runs the topology until this process is killed."""
    config = (
        KafkaSpoutConfig.builder(servers, TOPIC)
        .set_group_id(GROUP)
        .set_record_translator(SimpleRecordTranslator(numbered, Fields("key", "number")))
        .set_retry(RetryBackoff(10, 10))
        .set_offset_commit_period_ms(500)
        .build()
    )
    builder = TopologyBuilder()
    builder.set_spout("numbers", KafkaSpout(config, max_offsets_per_batch=max(1, messages // 50)))
    builder.set_bolt("count", Count(), 2).fields_grouping("numbers", Fields("key"))
    builder.set_bolt("total", Total(str(folder / "total.json"), messages)).global_grouping("count")
    with LocalCluster() as cluster:
        conf = {"topology.checkpoint.dir": str(folder / "checkpoint"), "topology.message.timeout.secs": 120}
        cluster.submit_topology("native-faults", conf, builder.create_topology())
        cluster.await_completion("native-faults", 3600)
        sys.stderr.write(f"{cluster.get_topology_info('native-faults')}\n")


class Driver:
    """The process of the driver, with all that it starts."""

    def __init__(self, folder: Path, servers: str, messages: int) -> None:
        command = [
            sys.executable,
            "-m",
            "lab.native_faults",
            "--drive",
            str(folder),
            servers,
            "--messages",
            str(messages),
        ]
        with (folder / "driver.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def members(self, word: str = "") -> list[psutil.Process]:
        """Returns the living processes of the session whose command has the word."""
        found = []
        for process in psutil.process_iter():
            try:
                if os.getsid(process.pid) == self._process.pid and word in " ".join(process.cmdline()):
                    found.append(process)
            except (ProcessLookupError, psutil.Error):
                continue
        return found

    def ended(self) -> bool:
        """Returns whether the driver's process has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kills the driver; the others of its session end by themselves."""
        self._process.kill()
        assert self._process.wait(30) == -signal.SIGKILL, "it was to be killed"
        _wait(lambda: not self.members(), "the end of what the driver has started", lambda: True)

    def stop(self) -> None:
        """Ends everything."""
        for process in self.members():
            process.kill()
        self._process.wait(30)


def _wait(condition: Callable[[], bool], what: str, alive: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _STUCK_SECS
    while not condition():
        if not alive() or time.monotonic() > deadline:
            raise SystemExit(f"{what}: did not come")
        time.sleep(0.05)


def fill(servers: str, messages: int) -> None:
    """Writes numbers from 0 to the topic, in all partitions."""
    from kafka import KafkaProducer

    create(servers, {TOPIC: PARTITIONS})
    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=20)
    for number in range(messages):
        producer.send(TOPIC, str(number).encode(), partition=number % PARTITIONS)
    producer.flush()
    producer.close()


def lag(servers: str) -> int:
    """Returns how many records the group has not committed."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=servers, group_id=GROUP)
    try:
        places = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        ends = consumer.end_offsets(places)
        return sum(ends[place] - (consumer.committed(place) or 0) for place in places)
    finally:
        consumer.close(autocommit=False)


def run(messages: int, seed: int) -> dict[str, Any]:
    """Returns what was done and found."""
    rng = random.Random(seed)
    done: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="native-faults-") as name, KafkaServer() as server:
        folder, servers = Path(name), server.bootstrap_servers
        fill(servers, messages)
        drivers, began = [Driver(folder, servers, messages)], time.monotonic()

        def total() -> int:
            path = folder / "total.json"
            return int(json.loads(path.read_text())[0]) if path.exists() else 0

        def alive() -> bool:
            return not drivers[-1].ended()

        def counted_up_to(number: int) -> bool:
            return total() >= number

        try:
            for number, victim in enumerate(_VICTIMS):
                at = int(messages * (0.1 + 0.8 * (number + rng.random()) / len(_VICTIMS)))
                _wait(partial(counted_up_to, at), f"{at} messages", alive)
                if victim == "driver":
                    drivers[-1].kill()
                    drivers.append(Driver(folder, servers, messages))
                else:
                    chosen = rng.choice(drivers[-1].members(_WORDS[victim]))
                    chosen.kill()
                    chosen.wait(10)
                done.append({"victim": victim, "at": at, "counted": total()})
            _wait(lambda: total() >= messages, "all messages", alive)
            secs = time.monotonic() - began
            _wait(lambda: lag(servers) == 0, "a lag of 0", alive)
            counted, keys = json.loads((folder / "total.json").read_text())
        except SystemExit as error:
            tail = (folder / "driver.log").read_text()[-3000:]
            raise SystemExit(f"{error}; total {total()}, lag {lag(servers)}\n{tail}") from None
        finally:
            drivers[-1].stop()
    wanted = {str(key): [len(range(key, messages, KEYS)), sum(range(key, messages, KEYS))] for key in range(KEYS)}
    wrong = [key for key in wanted if keys.get(key) != wanted[key]]
    return {
        "messages": messages,
        "seed": seed,
        "counted": counted,
        "wrong_keys": wrong,
        "faults": done,
        "secs": round(secs),
    }


def main() -> None:
    """Runs it, or is the driver."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drive", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        # Imported by name: what is defined in `__main__` is another module in every process.
        from lab import native_faults

        native_faults.drive(Path(options.drive[0]), options.drive[1], options.messages)
        return
    found = run(options.messages, options.seed)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    sys.exit(1 if found["wrong_keys"] or found["counted"] != options.messages else 0)


if __name__ == "__main__":
    main()
