"""Keys of topologies: those that work, and those of parts that are still to come."""

from __future__ import annotations

from typing import Final

from storm_on_spark.api.config.names import ConfigNames as N
from storm_on_spark.api.config.types import (
    BOOL,
    LIST,
    MAPPING,
    TEXT,
    TEXT_OR_TEXTS,
    TEXTS,
    ConfigKey,
    choice,
    honoured,
    integer,
    mapping,
    number,
    planned,
)

_STATE = "all state is saved with every micro-batch, in Spark's state store"
_WINDOWS = "there are no windowed bolts yet"
_TRIDENT = "there is no Trident yet"
_MULTILANG = "log messages of other languages go to Python's logging"
_METRICS = "there is no metrics API yet"
_CLUSTER = "the cluster does not read it yet"

HONOURED_KEYS: Final[tuple[ConfigKey, ...]] = (
    # Reliability.
    honoured(
        N.TOPOLOGY_MESSAGE_TIMEOUT_SECS,
        integer(1),
        30,
        "Seconds after which a tuple tree that isn't complete fails; it does so between this and twice this.",
    ),
    honoured(
        N.TOPOLOGY_WORKER_SHARED_THREAD_POOL_SIZE,
        integer(1),
        4,
        "Threads of `TopologyContext.get_shared_executor` in each Python process.",
    ),
    honoured(
        N.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS,
        BOOL,
        True,
        "Whether tuple trees time out at all. Without timeouts a lost tuple stays pending for ever.",
    ),
    honoured(
        N.TOPOLOGY_ACKER_EXECUTORS,
        integer(0),
        None,
        "Number of acker tasks; unset it is `topology.workers` at the first start. With 0 nothing is tracked, and "
        "a tuple with a message id is acked as soon as it is emitted.",
    ),
    honoured(
        N.TOPOLOGY_MAX_SPOUT_PENDING,
        integer(1),
        None,
        "Most tuples of each spout task that may be pending; while they are, `next_tuple` isn't called, and Spark "
        "reads no more rows of a native spout. Unset: no limit, but for rows of native spouts that failed. "
        "Tuples without a message id are never pending.",
        component=True,
    ),
    honoured(
        N.TOPOLOGY_MAX_ERROR_REPORT_PER_INTERVAL,
        integer(1),
        5,
        "Most errors that a task reports within `topology.error.throttle.interval.secs`.",
    ),
    honoured(
        N.TOPOLOGY_ERROR_THROTTLE_INTERVAL_SECS,
        integer(1),
        10,
        "Seconds over which `topology.max.error.report.per.interval` counts.",
    ),
    honoured(
        N.TOPOLOGY_TASK_STALL_SECS,
        integer(1),
        60,
        "Seconds after which a task that is still busy with one tuple counts as hanging: it is reported "
        "and its worker is ended; the micro-batch is tried again. Not a key of Storm's.",
    ),
    honoured(
        N.TOPOLOGY_FAIL_FAST,
        BOOL,
        False,
        "Whether an exception in a bolt ends the topology. Otherwise the trees of the bolt's input "
        "fail, the error is reported, and the topology goes on. Not a key of Storm's.",
        component=True,
    ),
    # State.
    honoured(
        N.TOPOLOGY_STATE_MEMORY_MB,
        integer(1),
        192,
        "Memory in MB that a worker uses for the entries of each task's `KeyValueState`; what is beyond stays in "
        "Spark's state store until it is asked for. Not a key of Storm's.",
        component=True,
    ),
    honoured(
        N.TOPOLOGY_STATE_ATTRIBUTE_WARN_MB,
        integer(1),
        16,
        "Size in MB of a bolt's pickled attributes from which on a warning names the largest: they are pickled whole "
        "after every micro-batch, where `KeyValueState` would write changes. Not a key of Storm's.",
        component=True,
    ),
    # Parallelism.
    honoured(
        N.TOPOLOGY_WORKERS,
        integer(1),
        1,
        "Most processes that host spouts, and the number of acker tasks where `topology.acker.executors` is unset. "
        "How many processes execute bolts is up to Spark; with the profile `realtime` it is this number, but no more "
        "than any bolt has tasks.",
    ),
    honoured(
        N.TOPOLOGY_SPOUTS_PLACEMENT,
        choice("driver", "executors"),
        "driver",
        "Where the processes that host spouts run: `driver` for beside the driver, `executors` for on the executors' "
        "machines, where each of them holds a task slot of Spark's for as long as the topology runs. Not a key of "
        "Storm's.",
    ),
    honoured(
        N.TOPOLOGY_TASKS,
        integer(1),
        None,
        "Number of tasks of a component, for the topology's life. Unset: as many as its parallelism hint.",
        component=True,
    ),
    honoured(
        N.TOPOLOGY_MAX_TASK_PARALLELISM,
        integer(1),
        None,
        "Most tasks that any component may have, whatever else it says. Unset: no limit.",
        component=True,
    ),
    honoured(
        N.TOPOLOGY_PARTITIONS,
        integer(1),
        None,
        "Number of Spark partitions that the tasks are spread over. Unset: the session's default "
        "parallelism when the topology first starts. Fixed for the life of a checkpoint. Not a key of "
        "Storm's.",
    ),
    # Time, batches and back pressure.
    honoured(
        N.TOPOLOGY_TICK_TUPLE_FREQ_SECS,
        integer(1),
        None,
        "Seconds between the tick tuples that the tasks of a bolt receive. Unset: none.",
        component=True,
    ),
    honoured(
        N.TOPOLOGY_BATCH_MAX_TUPLES,
        integer(1),
        100_000,
        "Most spout tuples in one micro-batch: more is faster, fewer is sooner. Not a key of Storm's.",
    ),
    honoured(
        N.TOPOLOGY_BATCH_MAX_SECS,
        number(0.1, 3600),
        5,
        "Seconds that a micro-batch should take at most: where tuples take long, the next ones hold fewer of them. "
        "Not a key of Storm's.",
    ),
    honoured(
        N.TOPOLOGY_BATCH_MIN_INTERVAL_MS,
        integer(0, 60_000),
        0,
        "Milliseconds from the start of a micro-batch to that of the next one, at least; one that is full starts at "
        "once. Fewer micro-batches take less processor time, and their tuples wait longer. Not a key of Storm's.",
    ),
    honoured(
        N.TOPOLOGY_PROFILE,
        choice("realtime", "latency", "throughput"),
        None,
        "Sets other keys, where they aren't set, for small delays or for high throughput; see the list of profiles. "
        "`realtime` executes tuples between micro-batches. Unset: in between. Not a key of Storm's.",
    ),
    honoured(
        N.TOPOLOGY_DURABILITY,
        choice("process", "machine"),
        None,
        "What must survive before a spout hears of an ack: `process` for the death of processes, `machine` also for "
        "the loss of the machine, say of its power: then everything is forced to the disk first, once a micro-batch. "
        "Unset: `machine` on a cluster, also one of Spark's, `process` on one machine. Not a key of Storm's.",
    ),
    honoured(
        N.TOPOLOGY_SPOUT_LOG_MAX_BYTES,
        integer(1),
        256 * 1024 * 1024,
        "Bytes that may wait in a spout task's log; while they do, `next_tuple` isn't called. Not a key of Storm's.",
        component=True,
    ),
    # The topology and what surrounds it.
    honoured(N.TOPOLOGY_NAME, TEXT, None, "The name under which the topology runs; set when it is submitted."),
    honoured(N.STORM_ID, TEXT, None, "The id of a run of the topology; set when it is submitted."),
    honoured(
        N.TOPOLOGY_CHECKPOINT_DIR,
        TEXT,
        None,
        "Where state, spout logs and positions are kept: a directory that all workers see under the same path. "
        "A topology that starts again with the same name and directory goes on where it was. Unset: a "
        "temporary directory. Not a key of Storm's.",
    ),
    honoured(
        N.TOPOLOGY_DEBUG,
        BOOL,
        False,
        "Whether every tuple that is emitted is logged.",
        component=True,
    ),
    honoured(
        N.TOPOLOGY_AUTO_TASK_HOOKS,
        TEXTS,
        None,
        "Task hooks that every task gets: names of classes, each as `module.Class`, made without arguments.",
        component=True,
    ),
    honoured(
        N.TOPOLOGY_MIN_REPLICATION_COUNT,
        integer(1),
        1,
        "Number of Nimbus hosts that must hold the code before a topology is activated.",
    ),
    honoured(
        N.TOPOLOGY_MAX_REPLICATION_WAIT_TIME_SEC,
        integer(-1),
        60,
        "Seconds to wait for that; then the topology is activated anyway. -1 waits for ever.",
    ),
    honoured(N.TOPOLOGY_VERSION, TEXT, None, "Your own version of the topology, for its status."),
    # Other languages.
    honoured(
        N.TOPOLOGY_MULTILANG_SERIALIZER,
        TEXT,
        "org.apache.storm.multilang.JsonSerializer",
        "How messages to processes in other languages are written: `json`, `msgpack` (needs the extra `multilang`), or "
        "the name of such a class of Storm's.",
        component=True,
    ),
    honoured(
        N.TOPOLOGY_SHELLBOLT_MAX_PENDING,
        integer(1),
        100,
        "Most messages that wait to be written to the process of a bolt in another language.",
        component=True,
    ),
    honoured(
        N.TOPOLOGY_SUBPROCESS_TIMEOUT_SECS,
        integer(1),
        None,
        "Seconds of silence after which a process of a component in another language is ended and started again; unset "
        "it is `supervisor.worker.timeout.secs`.",
        component=True,
    ),
)

PLANNED_KEYS: Final[tuple[ConfigKey, ...]] = (
    # State.
    planned(
        N.TOPOLOGY_STATE_PROVIDER,
        TEXT,
        None,
        "Name of the class that provides the state of stateful bolts.",
        _STATE,
        component=True,
    ),
    planned(
        N.TOPOLOGY_STATE_PROVIDER_CONFIG,
        TEXT,
        None,
        "Configuration of the state provider, as JSON.",
        _STATE,
        component=True,
    ),
    honoured(
        N.TOPOLOGY_STATE_CHECKPOINT_INTERVAL,
        integer(100),
        1000,
        "Milliseconds between two checkpoints with the profile `realtime`: so much is executed again after a "
        "crash, and its side effects may happen twice. In the other profiles each micro-batch is a checkpoint.",
    ),
    # Windows.
    planned(
        N.TOPOLOGY_BOLTS_WINDOW_LENGTH_COUNT,
        integer(1),
        None,
        "Length of a bolt's window in tuples.",
        _WINDOWS,
        component=True,
    ),
    planned(
        N.TOPOLOGY_BOLTS_WINDOW_LENGTH_DURATION_MS,
        integer(1),
        None,
        "Length of a bolt's window in milliseconds.",
        _WINDOWS,
        component=True,
    ),
    planned(
        N.TOPOLOGY_BOLTS_SLIDING_INTERVAL_COUNT,
        integer(1),
        None,
        "Tuples after which a bolt's window slides.",
        _WINDOWS,
        component=True,
    ),
    planned(
        N.TOPOLOGY_BOLTS_SLIDING_INTERVAL_DURATION_MS,
        integer(1),
        None,
        "Milliseconds after which a bolt's window slides.",
        _WINDOWS,
        component=True,
    ),
    planned(
        N.TOPOLOGY_BOLTS_LATE_TUPLE_STREAM,
        TEXT,
        None,
        "Stream on which a windowed bolt emits the tuples that came too late.",
        _WINDOWS,
        component=True,
    ),
    planned(
        N.TOPOLOGY_BOLTS_TUPLE_TIMESTAMP_MAX_LAG_MS,
        integer(0),
        None,
        "Milliseconds by which timestamps may be out of order.",
        _WINDOWS,
        component=True,
    ),
    planned(
        N.TOPOLOGY_BOLTS_WATERMARK_EVENT_INTERVAL_MS,
        integer(1),
        None,
        "Milliseconds between watermarks.",
        _WINDOWS,
        component=True,
    ),
    planned(
        N.TOPOLOGY_BOLTS_MESSAGE_ID_FIELD_NAME,
        TEXT,
        None,
        "Field that holds an ever growing message id, for stateful windows.",
        _WINDOWS,
        component=True,
    ),
    # Trident.
    planned(
        N.TOPOLOGY_TRIDENT_BATCH_EMIT_INTERVAL_MILLIS,
        integer(1),
        500,
        "Milliseconds between batches of a Trident topology.",
        _TRIDENT,
    ),
    planned(
        N.TOPOLOGY_TRIDENT_WINDOWING_INMEMORY_CACHE_LIMIT,
        integer(1),
        100,
        "Most tuples of a Trident window that are kept in memory.",
        _TRIDENT,
    ),
    planned(
        N.TOPOLOGY_SPOUT_MAX_BATCH_SIZE,
        integer(1),
        1000,
        "Most tuples of a plain spout in one Trident batch.",
        _TRIDENT,
        component=True,
    ),
    planned(N.TOPOLOGY_TRANSACTIONAL_ID, TEXT, None, "Id of a transactional topology.", _TRIDENT),
    # Other languages.
    planned(
        N.TOPOLOGY_MULTILANG_LOG_HANDLER,
        TEXT,
        None,
        "Name of the class that handles the log messages of such processes.",
        _MULTILANG,
        component=True,
    ),
    # Metrics and events.
    planned(N.TOPOLOGY_METRICS_CONSUMER_REGISTER, LIST, None, "Consumers of metrics, one mapping each.", _METRICS),
    planned(N.TOPOLOGY_METRICS_REPORTERS, LIST, None, "Reporters of metrics (v2), one mapping each.", _METRICS),
    planned(
        N.TOPOLOGY_BUILTIN_METRICS_BUCKET_SIZE_SECS,
        integer(1),
        60,
        "Seconds that one value of the built-in metrics covers.",
        _METRICS,
    ),
    planned(N.TOPOLOGY_ENABLE_V2_METRICS_TICK, BOOL, False, "Whether consumers get metrics of v2 too.", _METRICS),
    planned(
        N.TOPOLOGY_V2_METRICS_TICK_INTERVAL_SECONDS,
        integer(1),
        60,
        "Seconds between two reports of metrics of v2 to consumers.",
        _METRICS,
    ),
    planned(
        N.TOPOLOGY_EVENTLOGGER_EXECUTORS,
        integer(0),
        0,
        "Number of event loggers, which write samples of the emitted tuples.",
        _METRICS,
    ),
    planned(N.TOPOLOGY_EVENT_LOGGER_REGISTER, LIST, None, "Event loggers, one mapping each.", _METRICS),
    # The cluster.
    planned(N.TOPOLOGY_PRIORITY, integer(0), 29, "Priority of the topology; 0 goes before everything.", _CLUSTER),
    planned(
        N.TOPOLOGY_ENVIRONMENT,
        mapping(TEXT),
        None,
        "Environment variables for the topology's processes.",
        _CLUSTER,
    ),
    planned(
        N.TOPOLOGY_BLOBSTORE_MAP,
        mapping(MAPPING),
        None,
        "Blobs that the topology's tasks can read.",
        _CLUSTER,
    ),
    planned(
        N.TOPOLOGY_WORKER_TIMEOUT_SECS,
        integer(1),
        None,
        "Seconds without a heartbeat after which a worker of this topology counts as dead.",
        _CLUSTER,
    ),
    planned(N.TOPOLOGY_USERS, TEXT_OR_TEXTS, None, "Users who may operate the topology.", _CLUSTER),
    planned(N.TOPOLOGY_GROUPS, TEXT_OR_TEXTS, None, "Groups whose users may operate the topology.", _CLUSTER),
    planned(N.TOPOLOGY_READONLY_USERS, TEXT_OR_TEXTS, None, "Users who may look at the topology.", _CLUSTER),
    planned(N.TOPOLOGY_READONLY_GROUPS, TEXT_OR_TEXTS, None, "Groups whose users may look at it.", _CLUSTER),
    planned(N.TOPOLOGY_SUBMITTER_USER, TEXT, None, "Who submitted the topology.", _CLUSTER),
    planned(N.TOPOLOGY_SUBMITTER_PRINCIPAL, TEXT, None, "The principal who submitted the topology.", _CLUSTER),
    planned(
        N.TOPOLOGY_STATS_SAMPLE_RATE,
        number(0, 1),
        0.05,
        "Share of the tuples that are timed. Tuples are counted in full whatever it is.",
        _METRICS,
    ),
)
