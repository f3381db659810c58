"""The clients of one spout task: they talk to Kafka, and never make the spout wait.

Reading polls without waiting: kafka-python fetches on its own thread. All that waits for an answer (connecting,
looking partitions up, committing) happens on a thread of the task, the keeper, which tries again as long as no broker
answers. The spout gives it orders and looks for what it has found.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from storm_on_spark.api.config.secrets import scrubbed
from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.connectors.kafka.config import KafkaSpoutConfig
from storm_on_spark.connectors.kafka.errors import KafkaSpoutError
from storm_on_spark.connectors.kafka.lookups import (
    ExistingTopics,
    Found,
    LookUp,
    LookUps,
    committed_offset,
    note_of,
    topic_id,
)
from storm_on_spark.connectors.kafka.offsets import Partition

_log = logging.getLogger(__name__)

_ANSWER_MS: Final = 10_000
_FIRST_WAIT_SECS: Final = 0.1
_LONGEST_WAIT_SECS: Final = 5.0
_END_SECS: Final = 3.0
_MOST_RECONNECT_WAIT_MS: Final = 1_000
_REPLAY_WAIT_MS: Final = 20
_COLLECT_SECS: Final = 60.0
_TRY_SECS: Final = 2.0


class Commit(NamedTuple):
    """The committed offset of a partition."""

    offset: int
    topic_id: str | None
    """The id of the offset's topic; None if unknown."""


class Clients:
    """The clients of a task.

    Args:
        config: of the spout.
        task_index: of the task among those of the spout.
        tasks: how many there are.
        name: how logs call the task.

    Raises:
        SetupError: kafka-python is not installed, or too old.
        ConfigError: a property is unknown to it.
    """

    def __init__(self, config: KafkaSpoutConfig, task_index: int, tasks: int, name: str) -> None:
        self._config, self._name = config, name
        self._look_ups = LookUps(config, task_index, tasks, name)
        self._settings = consumer_settings(config)
        self._condition = threading.Condition()
        self._closing = False
        self._look_up: LookUp | None = None
        self._commit: dict[Partition, Commit] = {}
        #: As they were at the last look-up; None before it.
        self._existing: ExistingTopics | None = None
        self._wants_reader = self._wants_replayer = self._wants_ids = False
        #: Whether the last commit failed. Otherwise a look-up that gets no answer would hold commits up.
        self._asks_first = False
        self._client: Any = None
        self._collected = time.monotonic()
        self._found: Found | None = None
        #: What Kafka has confirmed, by partition.
        self.committed: dict[Partition, Commit] = {}
        #: The ids of the spout's topics, once `look_for_ids` was called; brokers before 2.8 have none.
        self.topic_ids: Mapping[str, str] = {}
        #: Reads new records, once `look_up` was called and there is a connection.
        self.reader: Any = None
        #: Reads records again, once `want_replayer` was called and there is a connection.
        self.replayer: Any = None
        #: Why the spout can't continue.
        self.failure: KafkaSpoutError | None = None
        #: Why no broker answers; None while one does.
        self.trouble: str | None = None
        self._thread = threading.Thread(target=self._keep, name=f"kafka-keeper-{name}", daemon=True)
        self._thread.start()

    # --- for the spout's thread ---------------------------------------------------------------

    def look_up(self, order: LookUp) -> None:
        """Requests a look-up; `found` returns its results."""
        with self._condition:
            self._look_up, self._wants_reader = order, True
            self._condition.notify()

    def found(self) -> Found | None:
        """Returns the results of a look-up; None if there is nothing new."""
        with self._condition:
            found, self._found = self._found, None
        return found

    def commit(self, offsets: Mapping[Partition, int], topic_ids: Mapping[str, str]) -> None:
        """Orders offsets to be committed, with the ids of their topics; `committed` tells when they are."""
        orders = {each: Commit(offset, topic_ids.get(each[0])) for each, offset in offsets.items()}
        with self._condition:
            self._commit.update({each: order for each, order in orders.items() if self.committed.get(each) != order})
            if self._commit:
                self._condition.notify()

    def want_replayer(self) -> None:
        """Orders a replayer."""
        with self._condition:
            self._wants_replayer = True
            self._condition.notify()

    def renew_replayer(self) -> None:
        """Ends the replayer, and orders another one."""
        replayer, self.replayer = self.replayer, None
        replayer.close(autocommit=False, timeout_ms=0)
        self.want_replayer()

    def close(self) -> None:
        """Ends the clients; what is ordered to be committed is, if Kafka answers within a few seconds."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        self._thread.join(_END_SECS)
        for client in (self.reader, self.replayer, self._client):
            if client is not None:
                client.close(autocommit=False, timeout_ms=0)
        # A call that waits for an answer ends with its client.
        self._thread.join(_END_SECS)

    def look_for_ids(self) -> None:
        """Orders the ids of the spout's topics; `topic_ids` has them then."""
        with self._condition:
            self._wants_ids = True
            self._condition.notify()

    # --- the keeper ---------------------------------------------------------------

    def _keep(self) -> None:
        from kafka.errors import KafkaError

        wait = _FIRST_WAIT_SECS
        while True:
            with self._condition:
                self._condition.wait_for(self._has_work)
                if self._closing and not self._commit:
                    return
            try:
                self._work()
            except KafkaSpoutError as error:
                self.failure = error
                return
            except (KafkaError, ConnectionError, TimeoutError) as error:
                if self._closing:
                    return
                if is_final(error):
                    self.failure = KafkaSpoutError(f"{self._name}: Kafka refuses: {described(error)}")
                    return
                if self.trouble is None:
                    self.trouble = described(error)
                    _log.warning("%s: no answer from Kafka, trying again: %s", self._name, self.trouble)
                self._free_sockets()
                with self._condition:
                    self._condition.wait_for(lambda: self._closing, wait)
                wait = min(2 * wait, _LONGEST_WAIT_SECS)
            except Exception as error:
                # The spout's thread raises it: this one has nobody to tell.
                self.failure = KafkaSpoutError(f"{self._name}: {type(error).__name__}: {described(error)}")
                return
            else:
                wait = _FIRST_WAIT_SECS
                if self.trouble is not None:
                    self.trouble = None
                    _log.warning("%s: Kafka answers again", self._name)

    def _free_sockets(self) -> None:
        """Collects garbage once a minute: kafka-python leaves the sockets of refused connections there."""
        now = time.monotonic()
        if now - self._collected > _COLLECT_SECS:
            self._collected = now
            gc.collect()

    def _has_work(self) -> bool:
        wants = self._wants_ids or (self._wants_replayer and not self.replayer)
        return bool(self._closing or self._look_up or self._commit or wants)

    def _work(self) -> None:
        if self._client is None:
            self._client = consumer(group_id=self._config.group_id, **self._settings)
        with self._condition:
            order, commit = self._look_up, dict(self._commit)
        asks_first, self._asks_first = self._asks_first, False
        if commit and not asks_first:
            self._commit_now(commit)
        if not self._closing:
            self._ask(order)
        if commit and asks_first:
            self._commit_now(commit)

    def _ask(self, order: LookUp | None) -> None:
        if order is not None:
            found = self._look_ups.find(self._client, order)
            self._existing = found.existing
            with self._condition:
                self._found = found
                if self._look_up is order:
                    self._look_up = None
        if self._wants_ids:
            self._wants_ids = False
            self._existing = self._look_ups.existing_topics(self._client)
            self.topic_ids = self._existing.topic_ids
        if self._wants_reader and self.reader is None:
            self.reader = consumer(group_id=None, **self._settings)
        if self._wants_replayer and self.replayer is None:
            # A fetch that waits for new records would hold up the next records to read again.
            self.replayer = consumer(group_id=None, **{**self._settings, "fetch_max_wait_ms": _REPLAY_WAIT_MS})

    def _commit_now(self, commit: dict[Partition, Commit]) -> None:
        from kafka.structs import OffsetAndMetadata, TopicPartition

        there = self._existing
        # Nothing can be committed of a topic that was deleted: Kafka's client would try until its time is over.
        present = {each: order for each, order in commit.items() if there is None or there.has(each, order.topic_id)}
        offsets = {
            TopicPartition(*where): OffsetAndMetadata(order.offset, note_of(order.topic_id), -1)
            for where, order in present.items()
        }
        try:
            if offsets:
                self._client.commit(offsets, timeout_ms=_ANSWER_MS)
        except Exception:
            # Perhaps of a topic, or of one of its partitions, that is gone since the last look-up.
            self._wants_ids = self._asks_first = True
            raise
        with self._condition:
            self.committed.update(present)
            self._commit = {where: order for where, order in self._commit.items() if commit.get(where) != order}


def committed_offsets(config: KafkaSpoutConfig, *, missing_ok: bool = False) -> dict[Partition, int | None]:
    """Returns what the group has committed of all partitions of the spout's topics; None where it has nothing.

    Args:
        config: of the spout.
        missing_ok: whether topics that are named may be missing.

    Raises:
        KafkaSpoutError: Kafka doesn't answer, or has not all topics that are named.
        SetupError: kafka-python is not installed, or too old.
    """
    from kafka.errors import KafkaError
    from kafka.structs import TopicPartition

    servers = ", ".join(config.bootstrap_servers)
    try:
        client = consumer(group_id=config.group_id, **consumer_settings(config))
        try:
            present = client.topics()
            if (missing := sorted(set(config.topics) - set(present))) and not missing_ok:
                raise KafkaSpoutError(f"Kafka at {servers} has no topic {', '.join(missing)}: create it first")
            topics = [topic for topic in present if topic in config.topics or config.matches(topic)]
            found = [(topic, number) for topic in topics for number in client.partitions_for_topic(topic)]
            name = f"group {config.group_id}"
            return {
                each: committed_offset(client, TopicPartition(*each), topic_id(client, each[0]), name)
                for each in sorted(found)
            }
        finally:
            client.close(autocommit=False, timeout_ms=0)
    except KafkaError as error:
        raise KafkaSpoutError(f"Kafka at {servers} does not answer: {described(error)}") from None


def group_position(config: KafkaSpoutConfig) -> str:
    """Returns in words how far the group has come, if a first start continues from there; otherwise empty.

    Raises:
        KafkaSpoutError: Kafka doesn't answer.
        SetupError: kafka-python is not installed, or too old.
    """
    if not config.first_poll_offset_strategy.name.startswith("UNCOMMITTED"):
        return ""
    topics = Counter(topic for (topic, _), offset in committed_offsets(config, missing_ok=True).items() if offset)
    found = ", ".join(f"{topic} ({count} partition{'s' * (count > 1)})" for topic, count in topics.items())
    return f"consumer group {config.group_id} has committed offsets of {found}" if found else ""


def kafka_python(kind: str) -> Any:
    """Returns the package `kafka`.

    Args:
        kind: of the component that needs it.

    Raises:
        SetupError: kafka-python is not installed, or too old.
    """
    try:
        import kafka
    except ImportError as error:
        raise SetupError(needs_extra(f"a Kafka {kind}", "kafka", "kafka-python")) from error
    if int(kafka.__version__.split(".")[0]) < 3:
        raise SetupError(f"a Kafka {kind} needs kafka-python 3 or newer (installed: {kafka.__version__})")
    return kafka


def consumer_settings(config: KafkaSpoutConfig) -> dict[str, Any]:
    """Returns the settings of a kafka-python consumer.

    Raises:
        SetupError: kafka-python is not installed, or too old.
        ConfigError: a property is unknown to it.
    """
    unknown = sorted(set(config.properties) - set(kafka_python("spout").KafkaConsumer.DEFAULT_CONFIG))
    if unknown:
        raise ConfigError(f"kafka-python has no setting {', '.join(map(repr, unknown))} for a consumer", key=unknown[0])
    return {
        "reconnect_backoff_max_ms": _MOST_RECONNECT_WAIT_MS,
        "bootstrap_timeout_ms": _ANSWER_MS,
        "allow_auto_create_topics": False,
        **config.properties,
        "bootstrap_servers": list(config.bootstrap_servers),
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "max_poll_records": config.max_poll_records,
    }


def consumer(**settings: Any) -> Any:
    """Returns a consumer of kafka-python."""
    return connected("KafkaConsumer", settings)


def connected(kind: str, settings: Mapping[str, Any]) -> Any:
    """Returns a client of kafka-python; one that doesn't get a connection leaves no thread behind.

    Args:
        kind: the name of its class.
        settings: of it.
    """
    import kafka

    made = []
    make = getattr(kafka, kind)

    def client(**given: Any) -> Any:
        made.append(make.DEFAULT_CONFIG["kafka_client"](**given))
        return made[-1]

    try:
        return _closing_what_fails(made, lambda: make(kafka_client=client, **settings))
    except kafka.errors.KafkaTimeoutError as error:
        # It tries again where a login is refused, and does not say so: the broker's answer comes with the end of the
        # connection, and kafka-python 3.0 drops it then.
        if "sasl_mechanism" in settings and _listens(settings["bootstrap_servers"]):
            user, mechanism = settings.get("sasl_plain_username"), settings["sasl_mechanism"]
            raise kafka.errors.KafkaTimeoutError(
                f"{error}: the broker refuses the login of {user!r} by {mechanism}, or does not answer it"
            ) from None
        raise


def _closing_what_fails(made: Sequence[Any], make: Callable[[], Any]) -> Any:
    try:
        return make()
    except BaseException:
        for each in made:
            each.close()
        raise


def _listens(servers: Sequence[str]) -> bool:
    """Returns whether one of the servers takes connections."""
    for server in servers:
        host, _, port = server.rpartition(":")
        with contextlib.suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), _TRY_SECS):
            return True
    return False


def is_final(error: Exception) -> bool:
    """Returns whether trying again can't help: a login or permission is refused, or settings make no sense."""
    from kafka import errors

    return isinstance(
        error,
        (
            errors.SaslAuthenticationFailedError,
            errors.AuthorizationError,
            errors.KafkaConfigurationError,
            errors.UnsupportedVersionError,
        ),
    )


def without_offset(error: Exception) -> list[Any]:
    """Returns the partitions for which an error says that the offset to read is not (or no longer) in Kafka."""
    from kafka import errors

    if isinstance(error, errors.OffsetOutOfRangeError):
        return list(error.args[0])
    # The log ends before the offset, or has another history: other replicas lead, or the topic was made again.
    return list(error.divergent_offsets) if isinstance(error, errors.LogTruncationError) else []


def parted_at(error: Exception) -> dict[Any, int]:
    """Returns, by partition, from which offset on an error says that the log has other records than were read.

    That is so after an unclean election: a replica leads that had not all records. 0 where Kafka doesn't know.
    """
    from kafka import errors

    if not isinstance(error, errors.LogTruncationError):
        return {}
    return {each: 0 if at is None else at.offset for each, at in error.divergent_offsets.items()}


def described(error: BaseException) -> str:
    """Returns an error's text without secrets."""
    return scrubbed(str(error)) or type(error).__name__


def now_ms(clock: Callable[[], float] = time.time) -> int:
    """Returns the milliseconds since the epoch."""
    return int(clock() * 1000)
