"""A Kafka bolt that compiles to Spark's own sink of Kafka."""

from __future__ import annotations

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
from storm_on_spark.connectors.kafka.writing.making import DEFAULTS, Failing, OutRecord, RecordMaking
from storm_on_spark.connectors.kafka.writing.trial import refusal
from storm_on_spark.connectors.tables import from_bytes, to_bytes
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
    again from its checkpoint, it goes on with the same micro-batch.

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
        self._records: list[tuple[Tuple, OutRecord]] = []
        self._written = b""

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
        use(context.spark, SOURCE, SOURCE_CLASS)
        reason = refusal(context.spark, self._settings(), self._topic)
        if reason is not None:
            raise SetupError(reason)

    def write(self, written: Sequence[bytes], context: SinkContext) -> None:
        """Has Spark write the records of all tasks.

        Raises:
            KafkaBoltError: Kafka did not take them.
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
            text = f"{len(records)} records were not written: {found[1]}: {scrubbed(found[2])}"
            raise KafkaBoltError(text) from None

    def _settings(self) -> dict[str, str]:
        servers = ",".join(self._servers)
        return {**kafka_properties({**DEFAULTS, **self._properties}), "bootstrap.servers": servers}


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
