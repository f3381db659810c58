"""What must hold at the end of a run: in plain Python over the same input, and by pyarrow over the tables' files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from lab.connectors.pipeline import COPIES, KEYS, PARTITIONS

FOREIGN_KEY = -1
"""Key of the rows that another writer put into the tables."""


@dataclass(frozen=True)
class Figures:
    """The counts of a run.

    Args:
        messages: to be read.
        lost: numbers that are not in the table.
        duplicates: rows of the table beyond one for each number.
        wrong_keys: keys with another count or sum than plain Python finds.
        copies: records in Kafka beyond one for each number; None where none are written.
    """

    messages: int
    lost: int
    duplicates: int
    wrong_keys: int
    copies: int | None


def check(
    folder: Path, messages: int, gone: set[int], servers: str | None, uncounted: set[int] | None = None
) -> tuple[Figures, list[str]]:
    """Returns the figures of a run, and its problems.

    Args:
        folder: of the run.
        messages: that were written to the topic: the numbers from 0.
        gone: those that were deleted before they were read.
        servers: of Kafka, if the numbers were copied to it.
        uncounted: those that are in the table of rows, and not in the counts.
    """
    expected = set(range(messages)) - gone
    rows = DeltaTable(folder / "rows").to_pyarrow_table(columns=["key", "number"]).to_pydict()
    counted = Counter(number for key, number in zip(rows["key"], rows["number"], strict=True) if key != FOREIGN_KEY)
    found = DeltaTable(folder / "keys").to_pyarrow_table(columns=["key", "count", "sum"]).to_pylist()
    keys = [(row["key"], row["count"], row["sum"]) for row in found if row["key"] != FOREIGN_KEY]
    by_key: dict[int, list[int]] = {key: [0, 0] for key in range(KEYS)}
    for number in expected - (uncounted or set()):
        by_key[number % KEYS][0] += 1
        by_key[number % KEYS][1] += number
    wanted = {(key, count, total) for key, (count, total) in by_key.items() if count}
    wrong = len(wanted.symmetric_difference(keys)) + len(keys) - len(set(keys))
    lost, more = expected - counted.keys(), counted.keys() - expected
    doubled = sum(counted.values()) - len(counted)
    copies, missing = (None, 0) if servers is None else _copies(servers, expected)
    problems = []
    if lost:
        problems.append(f"{len(lost)} numbers are not in the table, such as {min(lost)}")
    if more:
        problems.append(f"{len(more)} numbers are in the table that were deleted, such as {min(more)}")
    if doubled:
        problems.append(f"{doubled} rows are in the table twice")
    if wrong:
        problems.append(f"{wrong} keys have a wrong count or sum")
    if missing:
        problems.append(f"{missing} numbers are not in Kafka's topic")
    return Figures(len(expected), len(lost), doubled, wrong, copies), problems


def _copies(servers: str, expected: set[int]) -> tuple[int, int]:
    """Returns how many records are in the topic beyond one for each number, and how many numbers have none."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False)
    try:
        places = [TopicPartition(COPIES, number) for number in range(PARTITIONS)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        consumer.seek_to_beginning(*places)
        found: Counter[int] = Counter()
        while any(consumer.position(place) < ends[place] for place in places):
            for records in consumer.poll(1000).values():
                found.update(int(record.value) for record in records)
    finally:
        consumer.close()
    return sum(found.values()) - len(found), len(expected - found.keys())
