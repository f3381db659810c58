"""Failed records that are read again, with a client that falls silent."""

from __future__ import annotations

from types import SimpleNamespace

from kafka import TopicPartition

from storm_on_spark.connectors.kafka.offsets import Offsets
from storm_on_spark.connectors.kafka.reading.replay import Replay


class Client:
    """What `Replay` asks of a consumer of kafka-python's; a silent one never has anything."""

    def __init__(self, *, silent: bool) -> None:
        self.silent = silent
        self.at: dict[TopicPartition, int] = {}

    def assign(self, places) -> None:
        self.at = dict.fromkeys(places, 0)

    def seek(self, where, offset) -> None:
        self.at[where] = offset

    def resume(self, where) -> None: ...

    def pause(self, where) -> None: ...

    def poll(self, timeout_ms):
        if self.silent:
            return {}
        return {
            where: [SimpleNamespace(topic=where.topic, partition=where.partition, offset=offset)]
            for where, offset in self.at.items()
        }


class Owner:
    """The task's clients: the first replayer is silent, and the next one is not."""

    def __init__(self) -> None:
        self.replayer = Client(silent=True)
        self.renewed = 0

    def renew_replayer(self) -> None:
        self.renewed += 1
        self.replayer = Client(silent=False)


def test_a_client_that_is_silent_though_records_are_due_is_replaced() -> None:
    offsets = Offsets()
    offsets.begin(("t", 0), 5)
    offsets.partitions["t", 0].emit(5)
    offsets.partitions["t", 0].fail(5, 1000)
    owner = Owner()
    replay = Replay(owner, offsets)
    assert list(replay.step(999)) == []
    for now in (1_000, 6_000, 11_000):
        assert list(replay.step(now)) == []
    assert owner.renewed == 0
    assert list(replay.step(11_001)) == []
    assert owner.renewed == 1
    [(partition, offset, record)] = replay.step(11_002)
    assert (partition, offset, record.offset) == (("t", 0), 5, 5)
    assert owner.renewed == 1
