"""The settings of Spark that compiled queries need, with the reasons, and whether a user's session has them."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storm_on_spark.spark.session.jars import BARE_LOCAL_FS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BARE_FS_KEY = "spark.hadoop.fs.file.impl"
BARE_FS_CLASS = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
FILE_MANAGER_KEY = "spark.sql.streaming.checkpointFileManagerClass"
FILE_MANAGER_CLASS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
STACK_SIZE = "-Xss8m"

_LEAST_STACK_BYTES = 4 << 20

_lock = threading.Lock()
"""Held while a session has our settings. Two queries that start at once would undo each other's."""


@dataclass(frozen=True)
class Setting:
    """One setting; `why` says what goes wrong or is lost without it."""

    key: str
    value: str
    why: str
    is_default: bool = False
    """Whether this is Spark's default value."""


RUNTIME_SETTINGS = (
    Setting(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        "transformWithState accepts no other state store",
    ),
    Setting(
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled",
        "true",
        "each micro-batch would upload whole RocksDB files instead of what changed",
    ),
    Setting(
        "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows",
        "false",
        "each write to the state store would read first, to count rows",
    ),
    Setting(
        "spark.sql.adaptive.enabled",
        "false",
        "each micro-batch would be planned again between its stages, and partitions might be merged",
    ),
    Setting(
        "spark.sql.shuffle.orderIndependentChecksum.enabled",
        "false",
        "the topology would end when an executor is lost: a stage that Spark executes again has the same tuples, but "
        "not the same bytes, as it also reports how long they took",
    ),
    Setting(
        "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch",
        "false",
        "the same: Spark compares what a stage wrote if one of the two says so",
    ),
    Setting(
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled",
        "false",
        "the source's read and the stages behind it would not share Python workers, as their environments differ",
    ),
    Setting("spark.sql.streaming.pollingDelay", "5ms", "an idle source is asked again this soon"),
    Setting(
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        "10000",
        "bounds the rows of a batch to Python; a row is a chunk of many tuples",
    ),
    Setting(
        "spark.sql.execution.arrow.maxBytesPerBatch",
        "64MB",
        "bounds the bytes of a batch to Python",
    ),
)
"""Set on the session that starts a query; a running query keeps the values it was started with."""

QUERY_SETTINGS = (
    Setting(
        "spark.sql.codegen.wholeStage",
        "false",
        "Java code for the plan would be generated and compiled before the first micro-batch, for a few rows in each",
    ),
    Setting(
        "spark.sql.codegen.factoryMode",
        "NO_CODEGEN",
        "the same for each projection and ordering",
    ),
)
"""Set while a query is started, unless the session has its own values. Its other work needs the defaults."""

STATIC_SETTINGS = (
    Setting(
        "spark.python.worker.reuse",
        "true",
        "a Python worker would start for every task and no bolt instance could stay in memory",
        is_default=True,
    ),
    Setting(
        "spark.python.unix.domain.socket.enabled",
        "true",
        "state store calls from Python go over TCP and take longer",
    ),
    Setting("spark.speculation", "false", "a bolt's side effects would happen twice", is_default=True),
)
"""Fixed when the session starts."""

STARTED_SETTINGS = (
    Setting(
        "spark.broadcast.blockSize",
        "256k",
        "each micro-batch would allocate two blocks of 4 MB for a few KB that Spark broadcasts; objects so large start "
        "garbage collections, and these let the heap grow",
    ),
)
"""Also fixed, for sessions that we start; a session that other code started works without them."""

LEAKING_VERSION = "4.2.0"


def required_settings(*, bare_local_fs: bool = False) -> dict[str, str]:
    """Returns all settings for a new session, by key.

    Args:
        bare_local_fs: whether the jar of the bare local file system is on the class path.
    """
    settings = {setting.key: setting.value for setting in (*STATIC_SETTINGS, *STARTED_SETTINGS, *RUNTIME_SETTINGS)}
    if bare_local_fs:
        settings |= {BARE_FS_KEY: BARE_FS_CLASS, FILE_MANAGER_KEY: FILE_MANAGER_CLASS}
    return settings


@contextlib.contextmanager
def settings_applied(spark: SparkSession, extra: Mapping[str, str] | None = None) -> Iterator[None]:
    """Sets ours and `extra` on `spark` while a query is started, then puts back what was there.

    A query copies the session's settings when it starts, so the user's other work on the session is not
    touched.
    """
    with _lock:
        wanted = {setting.key: setting.value for setting in RUNTIME_SETTINGS} | dict(extra or {})
        if _conf(spark, BARE_FS_KEY) == BARE_FS_CLASS:
            wanted[FILE_MANAGER_KEY] = FILE_MANAGER_CLASS
        before = {key: spark.conf.get(key, None) for key in wanted}
        for setting in QUERY_SETTINGS:
            if spark.conf.get(setting.key, None) is None:
                before[setting.key], wanted[setting.key] = None, setting.value
        try:
            for key, value in wanted.items():
                spark.conf.set(key, value)
            yield
        finally:
            for key, old in before.items():
                if old is None:
                    spark.conf.unset(key)
                else:
                    spark.conf.set(key, old)


def check_session(spark: SparkSession) -> tuple[str, ...]:
    """Returns a sentence for each fixed setting of `spark` that does harm; none for a session of `local_session`.

    None of them forbids a run. What can be set at run time is not mentioned: `settings_applied` does that.
    """
    found = []
    if spark.version == LEAKING_VERSION:
        found.append(
            f"Spark {LEAKING_VERSION} loses a file descriptor with every stateful task (SPARK-58932): within hours a "
            "process has no more of them, and the topology fails. Use 4.2.1 or newer."
        )
    for setting in STATIC_SETTINGS:
        value = _conf(spark, setting.key)
        if value != setting.value and not (value is None and setting.is_default):
            found.append(f"The session has {setting.key}={value}: {setting.why}. Start it with {setting.value}.")
    master = spark.sparkContext.master or ""
    if single_attempt(master):
        found.append(
            f"The session's master is {master}, which tries each task once: a lost Python worker ends the "
            f"topology. Use {with_attempts(master)}."
        )
    if not _has_deep_stack(spark):
        found.append(
            "The session's driver has a small thread stack: stopping a topology may end in a "
            f"StackOverflowError. Start it with --driver-java-options {STACK_SIZE}."
        )
    if master.startswith("local") and _conf(spark, BARE_FS_KEY) != BARE_FS_CLASS:
        found.append(f"The session has no {BARE_FS_KEY}={BARE_FS_CLASS}: {BARE_LOCAL_FS.without}.")
    return tuple(found)


def single_attempt(master: str) -> bool:
    """Returns whether a task that fails on `master` is not tried again.

    >>> single_attempt("local[2]"), single_attempt("local[2,4]"), single_attempt("spark://host:7077")
    (True, False, False)
    """
    return re.fullmatch(r"local(\[[^,\]]+\])?", master.strip()) is not None


def with_attempts(master: str, attempts: int = 4) -> str:
    """Returns `master` with `attempts` tries per task where it is a local one that has a single try.

    >>> with_attempts("local[*]"), with_attempts("local"), with_attempts("local-cluster[2,1,1024]")
    ('local[*,4]', 'local[1,4]', 'local-cluster[2,1,1024]')
    """
    if not single_attempt(master):
        return master
    threads = re.search(r"\[(.+)\]", master)
    return f"local[{threads[1].strip() if threads else 1},{attempts}]"


def parallelism_of(master: str, conf: Mapping[str, str], cores: int) -> int | None:
    """Returns what will be `defaultParallelism` of a session on `master`; None if only its cluster can tell.

    Args:
        master: as Spark takes it.
        conf: Spark's settings.
        cores: how many cores this machine has.

    >>> [parallelism_of(master, {}, 8) for master in ("local", "local[3]", "local[*, 4]", "spark://host:7077")]
    [1, 3, 8, None]
    >>> parallelism_of("yarn", {"spark.default.parallelism": "6"}, 8)
    6
    """
    if "spark.default.parallelism" in conf:
        return int(conf["spark.default.parallelism"])
    found = re.fullmatch(r"local(\[\s*(\*|[0-9]+)\s*(,.*)?\])?", master)
    if found is None:
        return None
    return cores if found[2] == "*" else int(found[2] or 1)


def _conf(spark: SparkSession, key: str) -> str | None:
    return spark.sparkContext.getConf().get(key)


def _has_deep_stack(spark: SparkSession) -> bool:
    # Asked of the JVM itself: the option may come from a setting, a file, a command line or the environment.
    jvm = spark.sparkContext._jvm  # noqa: SLF001 # PySpark has no public way to the JVM's arguments
    if jvm is None:
        return True
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "": 1}
    sizes = [
        int(size[1]) * units[size[2].lower()]
        for argument in jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
        if (size := re.fullmatch(r"-Xss(\d+)([kmgKMG]?)", argument))
    ]
    return bool(sizes) and sizes[-1] >= _LEAST_STACK_BYTES
