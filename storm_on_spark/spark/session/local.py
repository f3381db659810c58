"""Starts and stops a local SparkSession that suits topologies and keeps the terminal clean."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import secrets
import signal
import site
import subprocess
import sys
import sysconfig
import threading
import time
import warnings
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes import at_once
from storm_on_spark.runtime.processes.sessions import kill_named
from storm_on_spark.spark.session import jars
from storm_on_spark.spark.session.accumulators import silence_its_end
from storm_on_spark.spark.session.class_archive import find_archive
from storm_on_spark.spark.session.classic import require_no_remote
from storm_on_spark.spark.session.dirs import (
    SHORT_TEMPORARY,
    fits_sockets,
    remove_scratch_of_the_dead,
    session_scratch,
    socket_folder,
)
from storm_on_spark.spark.session.home import environment, linked_home, temporary_files_in
from storm_on_spark.spark.session.interrupts import give_back, handlers_kept, held, take_over
from storm_on_spark.spark.session.java import Java, require_java
from storm_on_spark.spark.session.logs import LOG4J_CONFIGURATION, OutputPump, new_log_file
from storm_on_spark.spark.session.owned import remove_owned
from storm_on_spark.spark.session.settings import (
    BARE_FS_CLASS,
    BARE_FS_KEY,
    STACK_SIZE,
    check_session,
    parallelism_of,
    required_settings,
    settings_applied,
    with_attempts,
)

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

__all__ = [
    "check_session",
    "local_session",
    "log_file",
    "required_settings",
    "settings_applied",
    "stop_session",
]

STARTED_WITH = tuple(
    f"storm_on_spark.spark.{name}" for name in ("compiled", "query.lowering", "running.topology", "query.sink")
)
"""Modules that the start of a topology needs. They are in higher layers, so this module may not import them."""
_LOG_KEY = "spark.stormOnSpark.logFile"
_MEMORY, _JAVA_OPTIONS = "spark.driver.memory", "spark.driver.extraJavaOptions"
_CLASS_PATH = "spark.driver.extraClassPath"
_EXECUTORS_CLASS_PATH = "spark.executor.extraClassPath"
_SOCKETS = "spark.python.unix.domain.socket.dir"
_LISTS = {"spark.archives": ",", "spark.executorEnv.PYTHONPATH": os.pathsep}
"""Settings that get longer where `spark-submit` has some of its own, and what stands between their parts."""
_HADOOP_AWS = "hadoop-aws"
_STOP_SECS = 20.0
_READY_SECS = 4.0
"""For a session to be ready, so that a signal can end it in order."""
_KILLED_SECS = 5.0
"""For the files of a JVM that was killed to be removed."""
_QUICK_START = "-XX:TieredStopAtLevel=1"
"""The JVM moves opaque chunks and leaves the work to Python: the optimizing compiler costs more than it gains. See
docs/decisions/0011-start-of-the-jvm.md."""
_STEADY_HEAP = "-XX:G1HeapRegionSize=4m -XX:-G1UseAdaptiveIHOP"
"""Spark's buffers of 1 MB are ordinary objects, and old objects are looked through whenever they take 45 % of the heap.
Otherwise the heap grows to its limit. See docs/decisions/0035-steady-heap.md."""

_lock = threading.Lock()
_latest_log: Path | None = None
_pump: OutputPump | None = None
"""Of the JVM that we started; it ends when the JVM and the last Python worker have."""
_scratch: Path | None = None
"""That JVM's temporary files."""
_sockets: Path | None = None
"""The folder of its sockets; `_scratch` unless that has too long a path."""


def local_session(
    master: str | None = None, conf: Mapping[str, str] | None = None, checkpoint: str | os.PathLike[str] | None = None
) -> SparkSession:
    """Returns a SparkSession on this machine, made for topologies.

    A process has at most one Spark context: if there is one already, its session is returned as it is. Under
    `spark-submit`, or after an earlier session of somebody else, there is a JVM already: then what it was
    started with counts, and ours is added. `check_session` says what such a session lacks.

    Args:
        master: `local[N]`, `local-cluster[...]` or a cluster's address; by default `local` with all cores. A
            local master gets four attempts per task where it doesn't say otherwise.
        conf: settings of Spark that go before ours.
        checkpoint: of the topology that is to run; what its store needs is put on the class path.

    Raises:
        SetupError: no Java that Spark runs on, or Spark does not start (the message names the log file), or PySpark
            would connect to a remote session, or the checkpoint is in a store whose jars can't be had.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with _lock:
        require_no_remote()
        if SparkContext._active_spark_context is not None:  # noqa: SLF001 # no public way to ask
            return SparkSession.builder.getOrCreate()
        # Its user has stopped the session by itself. What a session reads from the environment at its start is gone.
        _end_jvm()
        if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:  # noqa: SLF001
            return _join(master, dict(conf or {}))
        master = with_attempts(master or f"local[{cores()}]")
        return _start(master, _with_jars(dict(conf or {}), checkpoint, master))


def stop_session(spark: SparkSession) -> None:
    """Stops `spark` and the JVM that `local_session` started for it, and removes its temporary files.

    Returns when the JVM has ended, so nothing is left running. A session that somebody else started, with a
    JVM of its own, is only stopped.
    """
    with _lock:
        _stop(spark)
        if _pump is not None:
            _end_jvm()


def _stop(spark: SparkSession) -> None:
    """Stops `spark`. It is no error if its JVM has ended already, for example because it was killed."""
    from py4j.protocol import Py4JNetworkError
    from pyspark.sql import SparkSession, SQLContext

    # Py4J logs a traceback, by the root logger, if the JVM ended amid a command.
    root, complaint = logging.getLogger(), "Exception while sending command."
    root.addFilter(unheard := lambda record: record.msg != complaint)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM", RuntimeWarning)
            spark.stop()
    except (Py4JNetworkError, OSError):
        # PySpark stops at its first call of the JVM. The remaining steps need no JVM.
        spark.sparkContext.stop()
        SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001 # as its stop() does
        SQLContext._instantiatedContext = None  # noqa: SLF001
    finally:
        root.removeFilter(unheard)


def log_file(spark: SparkSession | None = None) -> Path | None:
    """Returns where the log of `spark`, or of the session started last, is. None if we did not start it."""
    if spark is None:
        return _latest_log
    name = spark.sparkContext.getConf().get(_LOG_KEY)
    return None if name is None else Path(name)


def cores() -> int:
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def expected_parallelism(master: str | None = None, conf: Mapping[str, str] | None = None) -> int | None:
    """Returns what is `defaultParallelism` of the session that `local_session` returns for these arguments.

    No session is started. None if it is not known before, as on a cluster.
    """
    pyspark = sys.modules.get("pyspark")
    active = None if pyspark is None else pyspark.SparkContext._active_spark_context  # noqa: SLF001 # no public way
    if active is not None:
        found: int = active.defaultParallelism
        return found
    settings = conf or {}
    # A master among the settings wins.
    return parallelism_of(settings.get("spark.master") or master or f"local[{cores()}]", settings, cores())


def _start(master: str, conf: dict[str, str]) -> SparkSession:
    global _latest_log, _pump, _scratch, _sockets
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    java = require_java()
    take_over(_end_by_signal)
    log = _latest_log = new_log_file()
    scratch = _scratch = session_scratch()
    _sockets = scratch if fits_sockets(scratch) else socket_folder()
    _pump = None
    try:
        bare_fs = jars.fetch(jars.BARE_LOCAL_FS) if _on_this_machine(master) else None
        settings = _merged(_settings(master, log, scratch, bare_fs), conf)
        settings = _socket_setting(master, scratch, _sockets) | settings
        # Only what the JVM must know before it runs goes on its command line, which other users can read.
        launch = SparkConf(loadDefaults=False)
        for key in (_MEMORY, _JAVA_OPTIONS, _CLASS_PATH):
            if key in settings:
                launch.set(key, settings.pop(key))
        # A local-cluster has executors to start, for which Spark's script prepares more.
        quick = _quick_submit(java, bare_fs or (), launch) if master.startswith("local[") else None
        home = linked_home(scratch, quick) if _on_this_machine(master) else None
        ahead = threading.Thread(target=_import_ahead, name="import-ahead", daemon=True)
        ahead.start()
        reader, writer = os.pipe()
        _pump = OutputPump(os.fdopen(reader, "rb"), log.with_suffix(".out"))
        _pump.start()
        output = {"stdout": writer, "stderr": writer}
        with environment(java, scratch, home):
            # PySpark would lose the process that it starts, and remove the folder that it is about to write to.
            with held(lambda: kill_named(scratch)):
                try:
                    with temporary_files_in(scratch):
                        gateway = launch_gateway(launch, output)  # type: ignore[no-untyped-call] # PySpark's
                finally:
                    os.close(writer)
                # Modules of PySpark that import each other must not be imported by two threads at once.
                ahead.join()
                SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 # the way to hand over a gateway
            builder = SparkSession.builder.master(master)
            for key, value in settings.items():
                builder = builder.config(key, value)
            silence_its_end()
            # An interrupt in its middle would have Py4J print tracebacks, and pandas imported by half, for good.
            with handlers_kept(), held(lambda: kill_named(scratch), after_secs=_READY_SECS):
                return builder.getOrCreate()
    except Exception as error:
        # Before the JVM ends: the text of its exceptions is fetched from there.
        reason = _why_not(error, log, _pump)
        _end_jvm()
        raise SetupError(reason) from error
    except BaseException:  # an interrupt
        _end_jvm()
        raise


def _socket_setting(master: str, scratch: Path, sockets: Path) -> dict[str, str]:
    """Returns the setting of where Python workers make their sockets, if it is needed.

    Executors on other machines don't have the driver's folders. By default each JVM takes its own folder for temporary
    files, which is `scratch` for the driver's; if that has too long a path, only a folder that is everywhere suits all.
    """
    if _on_this_machine(master):
        return {_SOCKETS: str(sockets)}
    return _yarn_sockets(master) if sockets == scratch else {_SOCKETS: SHORT_TEMPORARY}


def _yarn_sockets(master: str) -> dict[str, str]:
    """Returns the same setting if the master is YARN's: a container's folder for temporary files is always too deep."""
    return {_SOCKETS: SHORT_TEMPORARY} if master.startswith("yarn") else {}


def _import_ahead() -> None:
    """Imports what the start of a topology needs, while the JVM is starting and this process would wait for it."""
    # What can't be imported says so where it is needed.
    with contextlib.suppress(Exception):
        for module in STARTED_WITH:
            import_module(module)


def _join(master: str | None, conf: dict[str, str]) -> SparkSession:
    """Starts a session in a JVM that runs already, with our settings wherever it has none of its own."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    SparkContext._ensure_initialized()  # noqa: SLF001 # connects: SparkConf sees spark-submit's settings
    given = dict(SparkConf().getAll())
    wanted = required_settings(bare_local_fs=given.get(BARE_FS_KEY) == BARE_FS_CLASS)
    wanted |= _yarn_sockets(given.get("spark.master", master or "")) | conf
    builder = SparkSession.builder
    if master is not None or "spark.master" not in given:
        builder = builder.master(with_attempts(master or f"local[{cores()}]"))
    for key, value in wanted.items():
        if key not in given:
            builder = builder.config(key, value)
        elif key in _LISTS and value not in given[key]:
            builder = builder.config(key, f"{value}{_LISTS[key]}{given[key]}")
    try:
        with handlers_kept():
            return builder.getOrCreate()
    except Exception as error:
        raise SetupError(f"Spark does not start: {_cause(error)}.") from error


def _settings(master: str, log: Path, scratch: Path, bare_fs: tuple[Path, ...] | None) -> dict[str, str]:
    settings = required_settings(bare_local_fs=bare_fs is not None) | {
        "spark.app.name": "storm-on-spark",
        _MEMORY: "2g",
        _JAVA_OPTIONS: f"{STACK_SIZE} {_QUICK_START} {_STEADY_HEAP} {_java_options(log, scratch)}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.structuredLogging.enabled": "false",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.task.maxFailures": "4",
        "spark.locality.wait": "0s",
        "spark.python.daemon.module": "storm_on_spark.spark.worker_daemon",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(_user_path(sys.path)),
        _LOG_KEY: str(log),
    }
    if bare_fs is not None:
        paths = os.pathsep.join(map(str, bare_fs))
        settings |= {_CLASS_PATH: paths, _EXECUTORS_CLASS_PATH: paths}
    if _on_this_machine(master):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Every user of the host reaches that address, and Spark's ports there take messages and give blocks.
            "spark.authenticate": "true",
            "spark.authenticate.secret": secrets.token_hex(32),
            # What is shuffled stays in this machine's memory, and ids hardly shrink.
            "spark.shuffle.compress": "false",
        }
    if (slots := parallelism_of(master, {}, cores())) is not None:
        # For what else runs on the session, such as a notebook's own queries: 200 tasks wait for these few slots.
        settings["spark.sql.shuffle.partitions"] = str(slots)
    if master.startswith("local-cluster"):
        # A file per executor: two processes can't roll one.
        name = str(log.with_name(f"{log.stem}-executor-{{{{EXECUTOR_ID}}}}.log"))
        settings |= {
            "spark.executor.extraJavaOptions": _java_options(Path(name), scratch),
            "spark.executor.logs.rolling.strategy": "size",
            "spark.executor.logs.rolling.maxSize": str(10 << 20),
            "spark.executor.logs.rolling.maxRetainedFiles": "3",
        }
    return settings


def _with_jars(conf: dict[str, str], checkpoint: str | os.PathLike[str] | None, master: str) -> dict[str, str]:
    """Returns the settings, with the jars of the checkpoint's store unless the user names such jars.

    Executors on other machines don't have the files; they get them from the driver.

    Raises:
        SetupError: they can't be had.
    """
    if not os.fspath(checkpoint or "").startswith("s3a:") or any(
        _HADOOP_AWS in value for key, value in conf.items() if "jars" in key or key.endswith("ClassPath")
    ):
        return conf
    found = jars.fetch(jars.S3A)
    if found is None:
        raise SetupError(
            f"a checkpoint in s3a:// needs the jars {', '.join(map(str, jars.S3A.jars))}, which can't be fetched here; "
            "put them on the class path with spark.driver.extraClassPath and spark.executor.extraClassPath"
        )

    def longer(key: str, separator: str) -> dict[str, str]:
        return {key: separator.join(filter(None, (conf.get(key), *map(str, found))))}

    executors = longer(_EXECUTORS_CLASS_PATH, os.pathsep) if _on_this_machine(master) else longer("spark.jars", ",")
    return {**conf, **longer(_CLASS_PATH, os.pathsep), **executors}


def _merged(ours: dict[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """Returns both, the user's before ours; lists of options and paths get longer instead."""
    merged = {**ours, **theirs}
    for key in ours.keys() & theirs.keys():
        if key.endswith("JavaOptions"):
            merged[key] = f"{ours[key]} {theirs[key]}"
        elif key.endswith("ClassPath"):
            merged[key] = os.pathsep.join((ours[key], theirs[key]))
    return merged


def _java_options(log: Path, scratch: Path) -> str:
    properties = {
        "log4j2.configurationFile": LOG4J_CONFIGURATION,
        "storm.log.file": log,
        "java.io.tmpdir": scratch,
    }
    return " ".join(f'"-D{key}={value}"' for key, value in properties.items())


def _quick_submit(java: Java, bare_fs: tuple[Path, ...], launch: SparkConf) -> str | None:
    """Returns a script that starts the JVM more quickly than Spark's own, if there is an archive of its classes."""
    archive = find_archive(java, bare_fs)
    # A class path of the user's comes before Spark's jars, and an archive is for one path only.
    if archive is None or launch.get(_CLASS_PATH, "") != os.pathsep.join(map(str, bare_fs)):
        return None
    return archive.submit_script(java, launch.get(_MEMORY, ""), launch.get(_JAVA_OPTIONS, ""))


def _user_path(path: Iterable[str]) -> list[str]:
    """Returns the folders of `path` that a worker would not have by itself: the script's own, the user's."""
    places = (*site.getsitepackages(), site.getusersitepackages(), *sysconfig.get_paths().values())
    own = {Path(folder).resolve() for folder in places}
    found: list[str] = []
    for entry in path:
        folder = Path(entry or ".").resolve()
        if folder.is_dir() and not any(folder == known or known in folder.parents for known in own):
            found.append(str(folder))
    return list(dict.fromkeys(found))


def _on_this_machine(master: str) -> bool:
    return master.startswith("local")


@atexit.register
def _end_at_exit() -> None:
    _end_jvm(exiting=True)


def _end_jvm(exiting: bool = False) -> None:
    """Ends the JVM that we started, if any, waits for it and removes its temporary files.

    A signal to end meanwhile has the JVM killed, so that this returns soon.
    """
    if _scratch is None or f"-{os.getpid()}-" not in _scratch.name:
        return  # Nothing runs, or this is a forked child of the process that it belongs to.
    scratch = _scratch
    with held(lambda: kill_named(scratch), exiting):
        _clear_up()


def _end_by_signal(number: int, frame: FrameType | None) -> None:
    """Ends this process by a signal that would have ended it at once, and left the session's files."""
    if _scratch is not None and f"-{os.getpid()}-" in _scratch.name:
        at_once.be_silent()
        for folder in at_once.folders():
            kill_named(folder)
        at_once.remove_all(time.monotonic() + _KILLED_SECS)
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def _clear_up() -> None:
    global _pump, _scratch, _sockets
    from pyspark import SparkContext

    assert _scratch is not None
    context = SparkContext._active_spark_context  # noqa: SLF001 # no public way to ask
    if context is not None:
        # Otherwise PySpark's accumulator server complains on the terminal that the JVM has hung up.
        with contextlib.suppress(Exception):
            context.stop()
    gateway = SparkContext._gateway  # noqa: SLF001 # the owner of the JVM's process
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 # the next session starts a new JVM
    if gateway is not None:
        with contextlib.suppress(Exception):
            gateway.shutdown()
        _end(gateway.proc)
    # PySpark may have started it, and not said so.
    kill_named(_scratch)
    if _pump is not None:
        _pump.join(_STOP_SECS)
    for folder in (_scratch, _sockets):
        if folder is not None:
            remove_owned(folder)
    give_back(_end_by_signal)
    # When this session began, the JVM of one whose driver was killed may still have been about to end.
    remove_scratch_of_the_dead()
    _pump = _scratch = _sockets = None


def _end(process: subprocess.Popen[bytes]) -> None:
    # Spark's gateway ends by itself when its standard input does.
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_STOP_SECS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _why_not(error: Exception, log: Path, pump: OutputPump | None) -> str:
    said = [line for line in (pump.tail if pump else []) if line.strip() and "incubator" not in line]
    cause = _cause(error, otherwise=said[0] if said else None)
    return f"Spark does not start: {cause}. Details are in {log} and beside it in {log.stem}.out."


def _cause(error: Exception, otherwise: str | None = None) -> str:
    """Returns Java's exception in `error` in one line, else `otherwise`, else the first line of `error`."""
    text = str(error)
    java = re.search(r"^(?:: )?(?:Caused by: )?([\w.$]+(?:Exception|Error)): ([^\n]+)", text, re.MULTILINE)
    if java is not None:
        return f"{java[1].rpartition('.')[2]}: {java[2].rstrip('.')}"
    return (otherwise or next(iter(text.strip().splitlines()), type(error).__name__)).rstrip(".")
