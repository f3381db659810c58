"""A Kafka bolt that compiles to Spark's own sink of Kafka."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from storm_on_spark.api.config.secrets import scrubbed
from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.sink import SinkBolt, SinkContext
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.task.collector import OutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.kafka.errors import KafkaBoltError
from storm_on_spark.connectors.kafka.jars import SOURCE, SOURCE_CLASS
from storm_on_spark.connectors.kafka.options import kafka_properties
from storm_on_spark.connectors.kafka.writing.record_mapping import DEFAULTS, Failing, OutRecord, RecordMaking
from storm_on_spark.connectors.kafka.writing.singly import is_refusal, refused_records
from storm_on_spark.connectors.kafka.writing.trial import refusal
from storm_on_spark.connectors.sinks.dead_letters import DeadLetters, Refused
from storm_on_spark.connectors.sinks.tables import from_bytes, to_bytes
from storm_on_spark.spark.session.jars import use

if TYPE_CHECKING:
    import pyarrow as pa

_ERROR: Final = re.compile(r"(?<![\w.])org\.apache\.kafka\.(?:\w+\.)*(\w+(?:Exception|Error)): ([^\n]+)")


class KafkaBolt(SinkBolt, RecordMaking):
    """Writes a record for each tuple, by Spark's own sink of Kafka, which the driver calls for each micro-batch.

    A tuple is acked once Kafka has confirmed its record and the micro-batch is committed. If the driver dies in
    between, the micro-batch is executed again and its records are written again: each is in the topic at least once.
    The records of all tasks are written in the order of the tasks' tuples. Ticks are acked and write nothing.

    A tuple of which no record can be made fails, with the reason. What Kafka doesn't take ends the topology: started
    again from its checkpoint, it continues with the same micro-batch. After `with_dead_letters` a record that Kafka
    refuses, say because it is too large, goes to a file. The micro-batch is then sent again record by record, so its
    other records may be in the topic twice.

    Args:
        bootstrap_servers: `host:port,host:port,…`.

    Raises:
        ConfigError: the servers make no sense.

    Example:
        >>> from storm_on_spark.connectors.kafka import FieldNameBasedTupleToKafkaMapper
        >>> bolt = KafkaBolt("127.0.0.1:9092").with_topic_selector("counts")
        >>> bolt = bolt.with_tuple_to_kafka_mapper(FieldNameBasedTupleToKafkaMapper("word", "count"))
    """

    refused: ClassVar[Mapping[str, str]] = {
        **RecordMaking.refused,
        "set_fire_and_forget": "a micro-batch is committed once it is written",
    }

    def __init__(self, bootstrap_servers: str) -> None:
        RecordMaking.__init__(self, bootstrap_servers)
        self._dead_letters = _dead_letters(None)
        self._records: list[tuple[Tuple, OutRecord]] = []
        self._written = b""

    def with_dead_letters(self, folder: str | os.PathLike[str]) -> KafkaBolt:
        """Says where records go that Kafka refuses: a folder on this machine, or shared by all with drivers.

        Raises:
            ConfigError: it is not a path.
        """
        self._dead_letters = _dead_letters(folder)
        return self

    def _checked_properties(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        # All together: a user name needs its mechanism.
        kafka_properties({**self._properties, **properties})
        return properties

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Notes the collector.

        Raises:
            ConfigError: it was not said where records go.
        """
        self._check_told()
        self._collector = collector
        self._failing = Failing(f"{context.this_component_id} (task {context.this_task_id})", collector)

    def execute(self, tup: Tuple) -> None:
        """Takes a tuple's record for this micro-batch."""
        if tup.is_tick:
            self._collector.ack(tup)
            return
        try:
            record = self._record(tup)
        except Exception as error:  # also what the user's functions raise
            self._failing.fail(tup, error)
            return
        if record is None:
            self._collector.ack(tup)
        else:
            self._records.append((tup, record))

    def finish_micro_batch(self) -> None:
        """Makes a table of the records, and acks their tuples."""
        records, self._records = self._records, []
        if records:
            self._written = to_bytes(_table([record for _, record in records]))
        for tup, _ in records:
            self._collector.ack(tup)
        self._failing.report()

    def take_written(self) -> bytes:
        """Returns the records as an Arrow stream."""
        written, self._written = self._written, b""
        return written

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares nothing: the bolt emits no tuples."""

    # --- in the driver ---------------------------------------------------------------

    def open_sink(self, context: SinkContext) -> None:
        """Asks Kafka whether the login and the topic, if it is always the same, are right.

        Raises:
            SetupError: they aren't, no broker answers, or the jars can't be had.
        """
        self._check_told()
        self._dead_letters.open()
        use(context.spark, SOURCE, SOURCE_CLASS)
        reason = refusal(context.spark, self._settings(), self._topic)
        if reason is not None:
            raise SetupError(reason)

    def write(self, written: Sequence[bytes], context: SinkContext) -> None:
        """Writes the records of all tasks through Spark.

        Raises:
            KafkaBoltError: Kafka did not take them.
            RefusedRowError: Kafka refused one, and there is not a folder for dead letters.
        """
        import pyarrow as pa

        records = pa.concat_tables([from_bytes(part) for part in written])
        # One task of Spark's, hence one producer: records keep their order.
        frame = context.spark.createDataFrame(records).coalesce(1)
        options = {f"kafka.{name}": value for name, value in self._settings().items()}
        try:
            frame.write.format("kafka").options(includeHeaders="true", **options).save()
        except Exception as error:
            found = _ERROR.search(str(error))
            if found is None:
                raise
            text = f"{found[1]}: {scrubbed(found[2])}"
            if not is_refusal(found[1], found[2]):
                raise KafkaBoltError(f"{len(records)} records were not written: {text}") from None
            if self._dead_letters:
                refused = refused_records(context.spark, self._settings(), records)
            else:
                # To find it out would write its neighbours again.
                refused = (each for each in [(_largest(records), f"{text} (the largest of {len(records)} is shown)")])
            kept = self._dead_letters.keep((Refused(*each) for each in refused), context)
        else:
            kept = False
        self._dead_letters.finish(context, kept=kept)

    def _settings(self) -> dict[str, str]:
        servers = ",".join(self._servers)
        return {**kafka_properties({**DEFAULTS, **self._properties}), "bootstrap.servers": servers}


def _dead_letters(folder: str | os.PathLike[str] | None) -> DeadLetters:
    return DeadLetters(folder, "Kafka", "with_dead_letters(FOLDER)")


def _largest(records: pa.Table) -> dict[str, Any]:
    rows: list[dict[str, Any]] = records.to_pylist()
    return max(rows, key=lambda row: len(row["key"] or b"") + len(row["value"] or b""))


def _table(records: Sequence[OutRecord]) -> pa.Table:
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    topics, keys, values, headers = zip(*records, strict=True)
    arrays = {
        "topic": pa.array(topics, pa.string()),
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "headers": pa.array(
            [[{"key": name, "value": value} for name, value in each] for each in headers], pa.list_(header)
        ),
    }
    return pa.table(arrays)
