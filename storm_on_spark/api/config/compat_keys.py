"""Keys of topologies that Storm has and that have nothing to act on here.

They are checked and accepted, so that a topology's configuration can be taken over as it is.
"""

from __future__ import annotations

from typing import Final

from storm_on_spark.api.config.names import ConfigNames as N
from storm_on_spark.api.config.types import (
    BOOL,
    LIST,
    LIST_OR_MAPPING,
    TEXT,
    TEXT_OR_TEXTS,
    TEXTS,
    ConfigKey,
    accepted,
    choice,
    integer,
    mapping,
    number,
)

_QUEUES = "tuples travel in chunks through Spark's exchanges; there is no such queue"
_JVM = "tasks run in Spark's Python workers; set Spark's own options for its JVMs and processes"
_PICKLE = "values are pickled, or travel as Arrow columns; there is no Kryo"
_SPARK = "Spark decides where tasks run and what they may use"
_SPOUT_WAIT = "a spout that has nothing to emit is asked again after 1 to 4 ms, progressively"
_BOLT_WAIT = "bolts don't wait for tuples: a micro-batch brings them"
_PRESSURE = "a spout is held back by `topology.max.spout.pending` and `topology.spout.log.max.bytes`"
_STATE = "state is saved with every micro-batch"
_PROGRESSIVE = "org.apache.storm.policy.WaitStrategyProgressive"

COMPAT_KEYS: Final[tuple[ConfigKey, ...]] = (
    # Queues and back pressure.
    accepted(
        N.TOPOLOGY_EXECUTOR_RECEIVE_BUFFER_SIZE,
        integer(1),
        32768,
        "Size of an executor's receive queue.",
        _QUEUES,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_TRANSFER_BUFFER_SIZE, integer(1), 1000, "Size of a worker's transfer queue.", _QUEUES
    ),
    accepted(N.TOPOLOGY_TRANSFER_BATCH_SIZE, integer(1), 1, "Tuples per transfer between workers.", _QUEUES),
    accepted(
        N.TOPOLOGY_PRODUCER_BATCH_SIZE, integer(1), 1, "Tuples per transfer between executors.", _QUEUES
    ),
    accepted(
        N.TOPOLOGY_BATCH_FLUSH_INTERVAL_MILLIS,
        integer(0),
        1,
        "Milliseconds after which an incomplete transfer is sent.",
        _QUEUES,
    ),
    accepted(
        N.TOPOLOGY_EXECUTOR_OVERFLOW_LIMIT,
        integer(0),
        0,
        "Tuples beyond a full receive queue after which further ones are dropped; 0 drops none.",
        "nothing is ever dropped",
    ),
    accepted(
        N.TOPOLOGY_BACKPRESSURE_ENABLE, BOOL, True, "Whether there is back pressure (Storm 1).", _PRESSURE
    ),
    accepted(
        N.TOPOLOGY_BACKPRESSURE_CHECK_MILLIS,
        integer(1),
        50,
        "Milliseconds between checks whether back pressure may end.",
        _PRESSURE,
    ),
    accepted(
        N.TOPOLOGY_BACKPRESSURE_WAIT_STRATEGY,
        TEXT,
        _PROGRESSIVE,
        "Name of the class that says how to wait for room in a queue.",
        _PRESSURE,
    ),
    accepted(N.TOPOLOGY_BACKPRESSURE_WAIT_PARK_MICROSEC, number(0), 100, "Microseconds per wait.", _PRESSURE),
    accepted(
        N.TOPOLOGY_BACKPRESSURE_WAIT_PROGRESSIVE_LEVEL1_COUNT,
        integer(0),
        1,
        "Waits on level 1 of the progressive strategy.",
        _PRESSURE,
    ),
    accepted(
        N.TOPOLOGY_BACKPRESSURE_WAIT_PROGRESSIVE_LEVEL2_COUNT,
        integer(0),
        1000,
        "Waits on level 2 of the progressive strategy.",
        _PRESSURE,
    ),
    accepted(
        N.TOPOLOGY_BACKPRESSURE_WAIT_PROGRESSIVE_LEVEL3_SLEEP_MILLIS,
        number(0),
        1,
        "Milliseconds per wait on level 3.",
        _PRESSURE,
    ),
    # Waiting for input.
    accepted(
        N.TOPOLOGY_SPOUT_WAIT_STRATEGY,
        TEXT,
        _PROGRESSIVE,
        "Name of the class that says how a spout without tuples waits.",
        _SPOUT_WAIT,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_SLEEP_SPOUT_WAIT_STRATEGY_TIME_MS,
        integer(0),
        1,
        "Milliseconds per wait (Storm 1).",
        _SPOUT_WAIT,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_SPOUT_WAIT_PARK_MICROSEC,
        number(0),
        100,
        "Microseconds per wait of a spout.",
        _SPOUT_WAIT,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_SPOUT_WAIT_PROGRESSIVE_LEVEL1_COUNT,
        integer(0),
        0,
        "Waits of a spout on level 1 of the progressive strategy.",
        _SPOUT_WAIT,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_SPOUT_WAIT_PROGRESSIVE_LEVEL2_COUNT,
        integer(0),
        0,
        "Waits of a spout on level 2 of the progressive strategy.",
        _SPOUT_WAIT,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_SPOUT_WAIT_PROGRESSIVE_LEVEL3_SLEEP_MILLIS,
        number(0),
        1,
        "Milliseconds per wait of a spout on level 3.",
        _SPOUT_WAIT,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_SPOUT_RECVQ_SKIPS,
        integer(0),
        3,
        "Calls of `next_tuple` per look into the receive queue.",
        _QUEUES,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_BOLT_WAIT_STRATEGY,
        TEXT,
        _PROGRESSIVE,
        "Name of the class that says how a bolt without tuples waits.",
        _BOLT_WAIT,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_BOLT_WAIT_PARK_MICROSEC,
        number(0),
        100,
        "Microseconds per wait of a bolt.",
        _BOLT_WAIT,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_BOLT_WAIT_PROGRESSIVE_LEVEL1_COUNT,
        integer(0),
        1,
        "Waits of a bolt on level 1 of the progressive strategy.",
        _BOLT_WAIT,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_BOLT_WAIT_PROGRESSIVE_LEVEL2_COUNT,
        integer(0),
        1000,
        "Waits of a bolt on level 2 of the progressive strategy.",
        _BOLT_WAIT,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_BOLT_WAIT_PROGRESSIVE_LEVEL3_SLEEP_MILLIS,
        number(0),
        1,
        "Milliseconds per wait of a bolt on level 3.",
        _BOLT_WAIT,
        component=True,
    ),
    # Where tuples go.
    accepted(
        N.TOPOLOGY_DISABLE_LOADAWARE_MESSAGING,
        BOOL,
        False,
        "Whether shuffles ignore the load of the receiving tasks.",
        "a shuffle is always even",
    ),
    accepted(
        N.TOPOLOGY_LOCALITYAWARE_HIGHER_BOUND,
        number(0),
        0.8,
        "Load above which a shuffle looks further away for tasks.",
        "a shuffle is always even",
    ),
    accepted(
        N.TOPOLOGY_LOCALITYAWARE_LOWER_BOUND,
        number(0),
        0.2,
        "Load below which a shuffle looks nearer for tasks.",
        "a shuffle is always even",
    ),
    # Serialization.
    accepted(
        N.TOPOLOGY_KRYO_REGISTER,
        LIST_OR_MAPPING,
        None,
        "Classes that Kryo serializes, with or without a serializer.",
        _PICKLE,
        component=True,
    ),
    accepted(N.TOPOLOGY_KRYO_DECORATORS, TEXTS, None, "Classes that customise Kryo.", _PICKLE),
    accepted(N.TOPOLOGY_KRYO_FACTORY, TEXT, None, "Name of the class that makes Kryo instances.", _PICKLE),
    accepted(
        N.TOPOLOGY_SKIP_MISSING_KRYO_REGISTRATIONS,
        BOOL,
        False,
        "Whether classes that can't be registered are skipped.",
        _PICKLE,
    ),
    accepted(
        N.TOPOLOGY_FALL_BACK_ON_JAVA_SERIALIZATION, BOOL, False, "Whether Java serializes the rest.", _PICKLE
    ),
    accepted(N.TOPOLOGY_STATE_KRYO_REGISTER, TEXTS, None, "Classes in state that Kryo serializes.", _PICKLE),
    accepted(N.TOPOLOGY_TUPLE_SERIALIZER, TEXT, None, "Name of the class that serializes tuples.", _PICKLE),
    accepted(
        N.TOPOLOGY_TESTING_ALWAYS_TRY_SERIALIZE,
        BOOL,
        False,
        "Whether tuples that stay in their worker are serialized too, as a test.",
        _PICKLE,
    ),
    accepted(
        N.TOPOLOGY_SERIALIZED_MESSAGE_SIZE_METRICS,
        BOOL,
        False,
        "Whether the bytes between each two tasks are counted.",
        "Spark's own user interface shows the bytes of every exchange",
    ),
    # Processes.
    accepted(N.TOPOLOGY_WORKER_CHILDOPTS, TEXT_OR_TEXTS, None, "JVM options of the workers.", _JVM),
    accepted(
        N.TOPOLOGY_WORKER_GC_CHILDOPTS, TEXT_OR_TEXTS, None, "JVM options for garbage collection.", _JVM
    ),
    accepted(
        N.TOPOLOGY_WORKER_LOGWRITER_CHILDOPTS,
        TEXT_OR_TEXTS,
        "-Xmx64m",
        "JVM options of the process that writes a worker's logs.",
        _JVM,
    ),
    accepted(N.TOPOLOGY_CLASSPATH, TEXT_OR_TEXTS, None, "Class path of the workers.", _JVM),
    accepted(N.TOPOLOGY_CLASSPATH_BEGINNING, TEXT_OR_TEXTS, None, "What goes before their class path.", _JVM),
    accepted(
        N.TOPOLOGY_WORKER_SHARED_THREAD_POOL_SIZE,
        integer(1),
        4,
        "Threads that the tasks of a worker share.",
        _JVM,
    ),
    accepted(N.TOPOLOGY_WORKER_RECEIVER_THREAD_COUNT, integer(1), 1, "Threads that receive tuples.", _QUEUES),
    accepted(
        N.TOPOLOGY_WORKER_METRICS, mapping(TEXT), None, "Metrics of every worker process, by name.", _JVM
    ),
    accepted(
        N.TOPOLOGY_LOGGING_SENSITIVITY,
        choice("S0", "S1", "S2", "S3"),
        None,
        "Who may read the logs, from everybody (S0) to few (S3).",
        "logs are files of whoever started the topology",
    ),
    accepted(
        N.TOPOLOGY_LOGGING_CONFIG_FILE,
        TEXT,
        None,
        "A further Log4j configuration for the workers.",
        "configure Python's logging, and Spark's with its own files",
    ),
    # Scheduling.
    accepted(
        N.TOPOLOGY_COMPONENT_RESOURCES_MAP,
        mapping(number(0)),
        None,
        "Resources that a task needs, by name.",
        _SPARK,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_COMPONENT_RESOURCES_ONHEAP_MEMORY_MB,
        number(0),
        128.0,
        "Megabytes of heap that a task needs.",
        _SPARK,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_COMPONENT_RESOURCES_OFFHEAP_MEMORY_MB,
        number(0),
        0.0,
        "Megabytes outside the heap that a task needs.",
        _SPARK,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_COMPONENT_CPU_PCORE_PERCENT,
        number(0),
        10.0,
        "How much of a core (100) a task needs.",
        _SPARK,
        component=True,
    ),
    accepted(
        N.TOPOLOGY_ACKER_RESOURCES_ONHEAP_MEMORY_MB,
        number(0),
        None,
        "Megabytes of heap that an acker needs.",
        _SPARK,
    ),
    accepted(
        N.TOPOLOGY_ACKER_RESOURCES_OFFHEAP_MEMORY_MB,
        number(0),
        None,
        "Megabytes outside the heap that an acker needs.",
        _SPARK,
    ),
    accepted(
        N.TOPOLOGY_ACKER_CPU_PCORE_PERCENT, number(0), None, "How much of a core an acker needs.", _SPARK
    ),
    accepted(
        N.TOPOLOGY_METRICS_CONSUMER_RESOURCES_ONHEAP_MEMORY_MB,
        number(0),
        None,
        "Megabytes of heap that a metrics consumer needs.",
        _SPARK,
    ),
    accepted(
        N.TOPOLOGY_METRICS_CONSUMER_RESOURCES_OFFHEAP_MEMORY_MB,
        number(0),
        None,
        "Megabytes outside the heap that a metrics consumer needs.",
        _SPARK,
    ),
    accepted(
        N.TOPOLOGY_METRICS_CONSUMER_CPU_PCORE_PERCENT,
        number(0),
        None,
        "How much of a core a metrics consumer needs.",
        _SPARK,
    ),
    accepted(
        N.TOPOLOGY_WORKER_MAX_HEAP_SIZE_MB, number(0), 768.0, "Most megabytes of heap per worker.", _SPARK
    ),
    accepted(N.TOPOLOGY_SCHEDULER_STRATEGY, TEXT, None, "Name of the class that places executors.", _SPARK),
    accepted(
        N.TOPOLOGY_SCHEDULER_FAVORED_NODES, TEXTS, None, "Hosts that are preferred.", _SPARK, component=True
    ),
    accepted(
        N.TOPOLOGY_SCHEDULER_UNFAVORED_NODES, TEXTS, None, "Hosts that are avoided.", _SPARK, component=True
    ),
    accepted(N.TOPOLOGY_ISOLATED_MACHINES, integer(1), None, "Hosts for this topology alone.", _SPARK),
    accepted(
        N.TOPOLOGY_SPREAD_COMPONENTS, TEXTS, None, "Components whose tasks go to different hosts.", _SPARK
    ),
    accepted(
        N.TOPOLOGY_RAS_CONSTRAINTS,
        LIST_OR_MAPPING,
        None,
        "Components that may not share a worker or a host.",
        _SPARK,
    ),
    accepted(
        N.TOPOLOGY_RAS_CONSTRAINT_MAX_STATE_SEARCH,
        integer(1),
        None,
        "Most steps of the search for a placement.",
        _SPARK,
    ),
    accepted(
        N.TOPOLOGY_RAS_CONSTRAINT_MAX_TIME_SECS,
        integer(1),
        None,
        "Most seconds for the search for a placement.",
        _SPARK,
    ),
    accepted(
        N.TOPOLOGY_RAS_ORDER_EXECUTORS_BY_PROXIMITY_NEEDS,
        BOOL,
        None,
        "Whether executors are placed in the order of the graph.",
        _SPARK,
    ),
    accepted(
        N.TOPOLOGY_RAS_ONE_EXECUTOR_PER_WORKER, BOOL, None, "Whether each executor gets a worker.", _SPARK
    ),
    accepted(
        N.TOPOLOGY_RAS_ONE_COMPONENT_PER_WORKER, BOOL, None, "Whether each component gets a worker.", _SPARK
    ),
    accepted(
        N.TOPOLOGY_RAS_ACKER_EXECUTORS_PER_WORKER,
        integer(0),
        1,
        "Ackers per worker where the scheduler estimates the number of workers.",
        "`topology.acker.executors` and `topology.workers` say how many ackers there are",
    ),
    # Others.
    accepted(
        N.TOPOLOGY_STATE_SYNCHRONIZATION_TIMEOUT_SECS,
        integer(1),
        60,
        "Seconds that a source of state may take to synchronise.",
        _STATE,
    ),
    accepted(
        N.TOPOLOGY_AUTO_CREDENTIALS,
        LIST,
        None,
        "Classes that push credentials to the workers.",
        "Spark distributes credentials to its executors",
    ),
)
