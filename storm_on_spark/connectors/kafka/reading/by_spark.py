"""A Kafka spout that compiles to Spark's own source of Kafka; retries are in `connectors/sources/spark_source.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.reading import Reader, ReadsItself
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.task.collector import SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.connectors.kafka.clients import Clients, committed_offsets, consumer_settings, group_position
from storm_on_spark.connectors.kafka.config import DEAD_LETTER_FIELDS, KafkaSpoutConfig, ProcessingGuarantee
from storm_on_spark.connectors.kafka.errors import KafkaSpoutError
from storm_on_spark.connectors.kafka.jars import SOURCE, SOURCE_CLASS
from storm_on_spark.connectors.kafka.lag import shown
from storm_on_spark.connectors.kafka.offsets import Offsets, Partition
from storm_on_spark.connectors.kafka.options import LEAST, checked_for_spark, only_for_spark, source_options
from storm_on_spark.connectors.kafka.reading.by_task import (
    TaskReader,
    begun_at,
    first_undone,
    moved,
    position_in,
    position_of,
    taken_over,
)
from storm_on_spark.connectors.kafka.records import DefaultRecordTranslator, KafkaRecord, KafkaTuple, as_bytes, as_text
from storm_on_spark.connectors.sources.spark_source import SparkSourceSpout
from storm_on_spark.spark.session.jars import use

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_RAW: Final = "topic", "partition", "offset", "key", "value"
_HEADERS: Final = "array<struct<key:string,value:binary>>"
MessageId = tuple[str, int, int]
"""Topic, partition and offset."""


class KafkaSpout(SparkSourceSpout, ReadsItself):
    """Emits the records of Kafka's topics; Spark reads them itself, by its own source.

    With the profile `realtime` the spout's task reads them, as that of a `PlainKafkaSpout` does.

    The message id of a tuple is (topic, partition, offset). How far Spark has read is in the topology's checkpoint: a
    restart continues exactly there. What is committed to the consumer group follows behind it, up to the first record
    that is not done, for tools that show the lag and for the first start without the checkpoint.

    A topic that was deleted and created again ends the topology: Spark's source knows topics by name, and would
    continue at the old offset.

    Args:
        config: what to read and how.
        max_offsets_per_batch: how many records a micro-batch reads at most, of all partitions together.
        options: more of Spark's source, such as `minPartitions`, or `kafka.ssl.keystore.location` of Kafka's client.

    Raises:
        ConfigError: Spark's source can't do what is configured.
        SetupError: kafka-python is not installed, by which offsets are committed.

    Example:
        >>> config = KafkaSpoutConfig.builder("127.0.0.1:9092", "lines").set_group_id("word-count").build()
        >>> KafkaSpout(config).tuple_streams()
        {'default': Fields('topic', 'partition', 'offset', 'key', 'value')}
    """

    dead_letter_fields = DEAD_LETTER_FIELDS
    _reader = Reader()

    def __init__(
        self,
        config: KafkaSpoutConfig,
        max_offsets_per_batch: int = 100_000,
        options: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        if not isinstance(config, KafkaSpoutConfig):
            raise ConfigError(f"KafkaSpout takes a KafkaSpoutConfig (given {config!r:.100})")
        super().__init__(config.retry, config.dead_letter_stream)
        most: object = max_offsets_per_batch
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise ConfigError(
                f"max_offsets_per_batch must be a whole number of 1 or more (given {most!r:.100})",
                key="max_offsets_per_batch",
            )
        self._options = {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in (options or {}).items()
        }
        checked_for_spark(config, self._options)
        consumer_settings(config)
        self._config, self._most = config, max_offsets_per_batch
        self.tracked = config.processing_guarantee is ProcessingGuarantee.AT_LEAST_ONCE

    def committed_outside(self) -> str:
        """Returns how far the consumer group has come, if a first start continues from there.

        Raises:
            KafkaSpoutError: Kafka doesn't answer.
        """
        return group_position(self._config)

    # --- where Spark reads ---------------------------------------------------------------

    def read(self, spark: SparkSession) -> DataFrame:
        """Returns Spark's source.

        Raises:
            KafkaSpoutError: Kafka doesn't say what the group has committed, or has no such topic.
            SetupError: the jars of the source can't be had.
        """
        return self._source(spark, self._most, self._options)

    def _source(self, spark: SparkSession, most: int, given: Mapping[str, str]) -> DataFrame:
        from pyspark.sql import functions as sf

        config = self._config
        asks = config.first_poll_offset_strategy.name.startswith("UNCOMMITTED")
        use(spark, SOURCE, SOURCE_CLASS)
        committed = committed_offsets(config) if asks else None
        options = source_options(config, committed, most, given, headers=self._shows_all)
        rows = spark.readStream.format("kafka").options(**options).load()
        if not self._shows_all:
            return rows.select(*_RAW)  # the others cost time for each record
        # Spark asks after each row how many bytes there are, and of lists that are null Arrow's Java then writes all
        # offsets again: 400,000 records without headers took 49 s, not 1.5 s (two cores, Spark 4.2.1).
        headers = sf.coalesce("headers", sf.array().cast(_HEADERS)).alias("headers")
        return rows.select(*_RAW, sf.unix_millis("timestamp").alias("timestamp"), headers)

    @property
    def _shows_all(self) -> bool:
        """Whether anybody sees timestamps and headers: a translator of the user's, or a dead letter."""
        config = self._config
        return type(config.translator) is not DefaultRecordTranslator or config.dead_letter_stream is not None

    @property
    def kafka_config(self) -> KafkaSpoutConfig:
        """Its configuration."""
        return self._config

    def get_component_configuration(self) -> Mapping[str, Any]:
        """Returns what others may know of it, without secrets: servers, topics and group, as in Storm."""
        return shown(self._config)

    def tuple_streams(self) -> Mapping[str, Fields]:
        """Returns the translator's streams."""
        return self._config.translator.streams()

    def columns(self, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        """Returns the records as columns if nothing of the user's looks at each; None otherwise."""
        import pyarrow as pa

        config = self._config
        kinds: Mapping[Any, pa.DataType] = {as_text: pa.string(), as_bytes: pa.binary()}
        if type(config.translator) is not DefaultRecordTranslator:
            return None
        columns = list(rows.columns[:3])
        for name, function in (("key", config.key_deserializer), ("value", config.value_deserializer)):
            if (kind := kinds.get(function)) is None:
                return None
            try:
                columns.append(rows.column(name).cast(kind))
            except pa.ArrowInvalid:
                return None  # not all are UTF-8: which are not is found one by one
        return pa.RecordBatch.from_arrays(columns, names=list(_RAW))

    def tuple_of(self, row: Mapping[str, Any]) -> Sequence[Any] | None:
        """Returns the translator's result for a record."""
        config = self._config
        record = KafkaRecord.read(
            (row["topic"], row["partition"], row["offset"]),
            (row["key"], config.key_deserializer),
            (row["value"], config.value_deserializer),
            row.get("timestamp", -1),
            _headers(row),
        )
        values = config.translator.apply(record)
        if values is None and config.emit_null_tuples:
            streams = config.translator.streams()
            stream = DEFAULT_STREAM if DEFAULT_STREAM in streams else next(iter(streams))
            return KafkaTuple([None] * len(streams[stream]), stream)
        return values

    def position(self, rows: pa.RecordBatch) -> dict[Partition, int]:
        """Returns the offset behind the last of the rows, by topic and partition."""
        import pyarrow as pa

        table = pa.Table.from_batches([rows.select(list(_RAW[:3]))])
        ends = table.group_by(list(_RAW[:2])).aggregate([("offset", "max")]).to_pylist()
        return {(end["topic"], end["partition"]): end["offset_max"] + 1 for end in ends}

    # --- in the process that keeps rows ---------------------------------------------------------------

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Prepares the task; Kafka is not contacted yet."""
        super().open(conf, context, collector)
        self._given: tuple[Any, ...] = conf, context, collector
        self._task: TaskReader | None = None
        self._name = f'Kafka spout "{context.this_component_id}" (task {context.this_task_id})'
        self._clients: Clients | None = None
        self._next_commit = 0.0

    def message_id(self, row: Mapping[str, Any]) -> MessageId:
        """Returns topic, partition and offset."""
        return row["topic"], row["partition"], row["offset"]

    def dead_letter(self, message_id: MessageId, row: Mapping[str, Any], reason: str, failures: int) -> Sequence[Any]:
        """Returns the record, as Kafka has it, with the reason."""
        return [*message_id, row["key"], row["value"], row.get("timestamp", -1), _headers(row), reason, failures]

    def passed(self, position: Mapping[Partition, int]) -> None:
        """Notes how far Spark has read."""
        if self._reader.by_task:
            self._rows.planned = False
            return  # the task has begun behind it
        ends = self._rows.positions
        ends.update({partition: max(end, ends.get(partition, 0)) for partition, end in position.items()})

    def committable(self) -> dict[Partition, int]:
        """Returns, by partition, the first offset that is not done."""
        found: dict[Partition, int] = dict(self._rows.positions)
        read: Offsets = self._rows.read or Offsets()
        for partition, offsets in read.partitions.items():
            found[partition] = offsets.low if offsets.pending else max(offsets.position, found.get(partition, 0))
        return first_undone(found, self.kept_messages())

    def next_tuple(self) -> None:
        """Emits tuples again that are due, and from time to time has offsets committed; in real time reads, too."""
        super().next_tuple()
        task = self._task_reader()
        if task is not None and self._reader.by_task:
            task.next_tuple()
            return
        if self._clients is None:
            self._clients = Clients(self._config, 0, 1, self._name)
        if self._clients.failure is not None:
            raise self._clients.failure
        self._check_ids(self._clients.topic_ids)
        now = self.clock()
        if not 0 < self._next_commit - now <= self._config.offset_commit_period_ms / 1000:
            self._next_commit = now + self._config.offset_commit_period_ms / 1000
            self._clients.look_for_ids()
            self._commit()
        if task is not None:
            task.emit_failed(self._clients)

    def ack(self, message_id: Any) -> None:
        """Forgets the record."""
        if message_id in self._rows.again:
            super().ack(message_id)
        elif (task := self._task_reader()) is not None:
            self._rows.planned = False  # no tuple of the task's is executed before it
            task.ack(message_id)

    def fail(self, message_id: Any) -> None:
        """Lets the record wait for its next attempt, or gives it up."""
        if message_id in self._rows.again:
            super().fail(message_id)
        elif (task := self._task_reader()) is not None:
            task.fail(message_id)

    @property
    def _known_ids(self) -> dict[str, str]:
        """The ids of topics. The task may have gone on with a topic that was made again."""
        read: Offsets | None = self._rows.read
        return self._rows.ids if read is None else {**self._rows.ids, **read.topic_ids}

    def _check_ids(self, ids: Mapping[str, str]) -> None:
        known = self._known_ids
        for topic, now in ids.items():
            self._rows.ids.setdefault(topic, now)
            if known.setdefault(topic, now) != now:
                raise KafkaSpoutError(
                    f"{self._name}: topic {topic} was deleted and created again, and Spark's source would continue "
                    "at the offset that it had reached before; start with a new checkpoint, topology.checkpoint.dir"
                )

    def deactivate(self) -> None:
        """Requests a commit of all offsets that may be committed."""
        if self._task is not None and self._reader.by_task:
            self._task.deactivate()
        self._commit()

    def close(self) -> None:
        """Commits all offsets that may be committed, and ends the clients."""
        if self._task is not None and self._reader.by_task:
            self._task.close()
        self._commit()
        if self._clients is not None:
            self._clients.close()
            self._clients = None

    def _commit(self) -> None:
        if self._clients is not None:
            self._clients.commit(self.committable(), self._known_ids)

    # --- in real time, where the task reads ---------------------------------------------------------------

    @property
    def only_spark_because(self) -> str:
        """Why only Spark can read: an option of its source's that the task's reader does not have."""
        return only_for_spark(self._config, self._options)

    def read_nothing(self, spark: SparkSession) -> DataFrame:
        """Returns Spark's source, which gives no more than was planned."""
        return self._source(spark, 0, {name: self._options[name] for name in self._options if name.lower() != LEAST})

    def read_by(self, reader: Reader) -> None:
        """Notes who reads."""
        self._reader = reader

    def reached(self) -> tuple[int, str | None]:
        """Returns how far the task has read."""
        read: Offsets | None = self._rows.read
        ends = {} if read is None else {each: offsets.position for each, offsets in read.partitions.items()}
        return self._rows.change, position_of(ends) if ends else None

    moved = staticmethod(moved)
    position_in = staticmethod(position_in)
    begun_at = staticmethod(begun_at)

    def _task_reader(self) -> TaskReader | None:
        """Returns the task's reader; None if it neither reads nor has read. Only once the state is restored."""
        if self._task is None:
            rows, reader = self._rows, self._reader
            if reader.by_task and rows.change < reader.change:
                rows.read, rows.change = taken_over(rows.read, reader.start, rows.ids), reader.change
                rows.positions, rows.planned = {}, reader.planned
            if rows.read is not None:
                self._task = TaskReader(self._config, rows, self.kept_messages)
                self._task.open(*self._given)
        return self._task


def _headers(row: Mapping[str, Any]) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((header["key"], header["value"]) for header in row.get("headers") or ())
