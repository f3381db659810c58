"""The Kafka spout against a real broker."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer, TopicPartition
from kafka_broker import Kafka, read, until
from topologies import kafka_words

from storm_on_spark import Fields
from storm_on_spark.cli.main import main
from storm_on_spark.connectors.kafka import (
    FirstPollOffsetStrategy,
    KafkaSpoutError,
    PlainKafkaSpout,
    ProcessingGuarantee,
    RetryBackoff,
    SimpleRecordTranslator,
)
from storm_on_spark.testing import Emission, SpoutTester, running_topology
from storm_on_spark.testing.plugin import kafka_server

__all__ = ["kafka_server"]


def values(emissions: list[Emission]) -> list[object]:
    return [emission.values[0] for emission in emissions]


def test_a_record_is_emitted_with_all_that_kafka_knows_of_it(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, "to be", key=b"k", timestamp_ms=1234, headers=[("h", b"\xff")])
    kafka.send(topic, None, key=b"gone")
    translator = SimpleRecordTranslator(
        lambda r: None if r.value is None else [r.topic, r.offset, r.key, r.value, r.timestamp, r.headers],
        Fields("topic", "offset", "key", "value", "timestamp", "headers"),
    )
    config = kafka.config(re.compile(f"{topic}|nothing")).set_record_translator(translator)
    with SpoutTester(PlainKafkaSpout(config.set_group_id(f"{topic}-a").build())) as tester:
        (first,) = read(tester, 1)
        assert first.values == (topic, 0, "k", "to be", 1234, (("h", b"\xff"),))
        assert first.message_id == (topic, 0, 0)
        tester.ack(first.message_id)
        # The record without a value has no tuple, and counts as done.
        until(lambda: kafka.committed(f"{topic}-a", topic) == 2, tester.next_tuple)
    config.set_emit_null_tuples(True).set_group_id(f"{topic}-b")
    with SpoutTester(PlainKafkaSpout(config.build())) as tester:
        assert read(tester, 2)[1].values == (None,) * 6


def test_offsets_are_committed_up_to_the_first_pending_one_and_a_restart_goes_on_there(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, *map(str, range(6)))
    config = kafka.config(topic).set_group_id(topic).set_max_uncommitted_offsets(4).build()
    with SpoutTester(PlainKafkaSpout(config)) as tester:
        assert values(read(tester, 4)) == ["0", "1", "2", "3"]
        for offset in (3, 0):
            tester.ack((topic, 0, offset))
        # Offset 1 is pending, and one more fits.
        assert values(read(tester, 1)) == ["4"]
        until(lambda: kafka.committed(topic, topic) == 1, tester.next_tuple)
        assert tester.spout.offsets.partitions[topic, 0].uncommitted == 4

        old = tester.spout
        tester.restart()
        old.close()
        for offset in (1, 2):
            tester.ack((topic, 0, offset))
        # From the state, not from what Kafka knows, which is offset 1.
        assert values(read(tester, 1)) == ["5"]
        until(lambda: kafka.committed(topic, topic) == 4, tester.next_tuple)
    with SpoutTester(PlainKafkaSpout(config)) as tester:
        # Without the checkpoint it continues where the group was.
        assert values(read(tester, 2)) == ["4", "5"]


def test_a_failed_record_is_emitted_again_by_itself_and_given_up_in_the_end(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, "a", "bad", "c")
    config = kafka.config(topic).set_retry(RetryBackoff(max_retries=1)).set_dead_letter_stream("dead").build()
    bad = (topic, 0, 1)
    with SpoutTester(PlainKafkaSpout(config)) as tester:
        assert values(read(tester, 3)) == ["a", "bad", "c"]
        tester.fail(bad)
        kafka.send(topic, "d")
        assert sorted(values(read(tester, 2))) == ["bad", "d"]
        old = tester.spout
        tester.restart()
        old.close()
        tester.fail(bad)
        (dead,) = read(tester, 1)
        assert (dead.stream, dead.message_id) == ("dead", bad)
        assert dead.values[:5] == (topic, 0, 1, None, b"bad")
        assert dead.values[-2:] == ("failed or timed out 2 times, more than max_retries=1 allows", 2)
        # A dead letter that fails is one again.
        tester.fail(bad)
        (again,) = read(tester, 1)
        assert again.values[:-1] == dead.values[:-1]
        for offset in (0, 1, 2, 3):
            tester.ack((topic, 0, offset))
        assert tester.spout.offsets.committable() == {(topic, 0): 4}


def test_a_record_that_cannot_be_translated_is_a_dead_letter_or_an_error(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, "1", "x")
    config = kafka.config(topic).set_value_deserializer(int)
    with (
        SpoutTester(PlainKafkaSpout(config.set_group_id(f"{topic}-a").build())) as tester,
        pytest.raises(KafkaSpoutError, match=f"topic {topic} partition 0 offset 1: the record can't be translated"),
    ):
        read(tester, 2)
    config.set_dead_letter_stream("dead").set_group_id(f"{topic}-b")
    with SpoutTester(PlainKafkaSpout(config.build())) as tester:
        one, two = read(tester, 2)
        assert (one.values, one.stream, two.stream) == ((1,), "default", "dead")
        assert "ValueError" in two.values[-2]


def test_partitions_are_dealt_out_and_new_ones_are_noticed(kafka: Kafka) -> None:
    topic = kafka.topic(2)
    for partition in (0, 1):
        kafka.send(topic, f"p{partition}", partition=partition)
    config = kafka.config(topic).set_first_poll_offset_strategy(FirstPollOffsetStrategy.EARLIEST).build()
    spouts = [SpoutTester(PlainKafkaSpout(config), tasks=2, task_index=index) for index in (0, 1)]
    try:
        first = [values(read(spout, 1)) for spout in spouts]
        assert sorted(first) == [["p0"], ["p1"]]
        kafka.grow(topic, 3)
        kafka.send(topic, "p2", partition=2)
        at = first.index(["p0"])  # partitions of a topic go round
        assert values(read(spouts[at], 1)) == ["p2"]
    finally:
        for spout in spouts:
            spout.close()


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (FirstPollOffsetStrategy.EARLIEST, ["0", "1", "2", "new"]),
        (FirstPollOffsetStrategy.LATEST, ["new"]),
        (FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST, ["1", "2", "new"]),
        (FirstPollOffsetStrategy.UNCOMMITTED_LATEST, ["1", "2", "new"]),
        (FirstPollOffsetStrategy.TIMESTAMP, ["2", "new"]),
    ],
)
def test_where_the_first_poll_begins(kafka: Kafka, strategy: FirstPollOffsetStrategy, expected: list[str]) -> None:
    topic = kafka.topic()
    for number in range(3):
        kafka.send(topic, str(number), timestamp_ms=1000 + number)
    with SpoutTester(PlainKafkaSpout(kafka.config(topic).set_group_id(topic).build())) as tester:
        read(tester, 3)
        tester.ack((topic, 0, 0))
        until(lambda: kafka.committed(topic, topic) == 1, tester.next_tuple)
    config = kafka.config(topic).set_group_id(topic).set_first_poll_offset_strategy(strategy)
    if strategy is FirstPollOffsetStrategy.TIMESTAMP:
        config.set_start_timestamp(1002)
    with SpoutTester(PlainKafkaSpout(config.build())) as tester:
        until(lambda: bool(tester.spout.offsets.partitions), tester.next_tuple)
        kafka.send(topic, "new")
        # Those before that were emitted while it was waited for are among them.
        until(lambda: ("new",) in tester.collector.values(), tester.next_tuple)
        assert [value for (value,) in tester.collector.values()] == expected


@pytest.mark.parametrize("guarantee", [ProcessingGuarantee.AT_MOST_ONCE, ProcessingGuarantee.NO_GUARANTEE])
def test_without_tracking_offsets_are_committed_all_the_same(kafka: Kafka, guarantee: ProcessingGuarantee) -> None:
    topic = kafka.topic()
    kafka.send(topic, "a", "b")
    config = kafka.config(topic).set_group_id(topic).set_processing_guarantee(guarantee).build()
    with SpoutTester(PlainKafkaSpout(config)) as tester:
        found = read(tester, 1)
        if guarantee is ProcessingGuarantee.AT_MOST_ONCE:
            assert kafka.committed(topic, topic) == 2
        found += read(tester, 1)
        assert [(emission.values, emission.message_id) for emission in found] == [(("a",), None), (("b",), None)]
        until(lambda: kafka.committed(topic, topic) == 2, tester.next_tuple)


def test_an_offset_that_is_gone_is_an_error_unless_it_is_said_where_to_go_on(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, *map(str, range(5)))
    config = kafka.config(topic).set_group_id(topic).set_max_uncommitted_offsets(1)
    with SpoutTester(PlainKafkaSpout(config.build())) as tester:
        read(tester, 1)
        tester.ack((topic, 0, 0))
        until(lambda: kafka.committed(topic, topic) == 1, lambda: tester.spout.deactivate())
    kafka.forget(topic, 3)
    with (
        SpoutTester(PlainKafkaSpout(config.build())) as tester,
        pytest.raises(KafkaSpoutError, match=f"topic {topic} partition 0: offset 1 is not in Kafka"),
    ):
        read(tester, 1)
    with SpoutTester(PlainKafkaSpout(config.set_prop("auto.offset.reset", "earliest").build())) as tester:
        assert values(read(tester, 1)) == ["3"]


def test_a_failed_record_that_is_gone_is_a_dead_letter_too(kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, "a", "b", "c")
    with SpoutTester(PlainKafkaSpout(kafka.config(topic).set_dead_letter_stream("dead").build())) as tester:
        read(tester, 3)
        kafka.forget(topic, 2)
        for offset in (0, 1, 2):
            tester.fail((topic, 0, offset))
        found = {emission.message_id[2]: emission for emission in read(tester, 3)}
        assert found[2].values == ("c",)
        assert {found[offset].values[-2] for offset in (0, 1)} == {"the record is no longer in Kafka"}


@pytest.mark.representative
def test_word_count_on_spark_is_exact(kafka: Kafka, nothing_left_behind, spark_session) -> None:
    topic = kafka.topic(2)
    texts = [f"w{number % 7} w{number % 3}" for number in range(200)] + ["once more", "never mind"]
    for partition in (0, 1):
        kafka.send(topic, *texts[partition::2], partition=partition)
    expected = Counter(word for text in texts if text != "never mind" for word in text.split())
    with running_topology(kafka_words.make(kafka.server.bootstrap_servers, topic), spark=spark_session) as running:
        captured = running.wait_until(lambda captured: len(captured.acked("lines")) == len(texts))
        until(lambda: [kafka.committed(kafka_words.GROUP, topic, number) for number in (0, 1)] == [101, 101])
    assert Counter(word for (word,) in captured.values("split")) == expected
    ((_, _, offset, _, value, *_, reason, failures),) = captured.values("lines", "dead")
    assert (offset, value, failures) == (100, b"never mind", 3)
    assert reason.startswith("failed or timed out 3 times")
    # Two tasks read, and what failed was emitted again by itself.
    assert len({tup.task for tup in captured.tuples if tup.component == "lines"}) == 2
    assert sorted(captured.failed("lines")) == [(topic, 0, 100), *[(topic, 1, 100)] * 3]


def test_topics_are_made_and_files_loaded_while_the_broker_runs(kafka: Kafka, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("to be\nor not\n", "utf-8")
    command = ["dev-kafka", "--running", "--port", str(kafka.server.port), "--topic", "made:3"]
    done = CliRunner().invoke(main, [*command, "--load", f"loaded={file}"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "2 lines are in topic loaded.\nThere is a topic made.\n"
    again = CliRunner().invoke(main, [*command, "--load", f"loaded={file}", "--json"])
    servers = kafka.server.bootstrap_servers
    assert json.loads(again.stdout) == {
        "kafka": servers, "pid": None, "topics": {"loaded": 1, "made": 3}, "loaded": {"loaded": 2}
    }  # fmt: skip
    with closing(KafkaConsumer(bootstrap_servers=servers)) as consumer:
        assert len(consumer.partitions_for_topic("made")) == 3
        assert consumer.end_offsets([TopicPartition("loaded", 0)]) == {TopicPartition("loaded", 0): 4}
    assert kafka.server.pid is not None
