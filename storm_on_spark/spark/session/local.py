"""Starts and stops a local SparkSession that suits topologies and keeps the terminal clean."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import signal
import subprocess
import threading
import time
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.ending import at_once
from storm_on_spark.runtime.processes.sessions import kill_named
from storm_on_spark.spark.session import jars
from storm_on_spark.spark.session.folders.dirs import (
    fits_sockets,
    remove_scratch_of_the_dead,
    session_scratch,
    socket_folder,
)
from storm_on_spark.spark.session.folders.owned import remove_owned
from storm_on_spark.spark.session.interrupts import InterruptsWait, give_back, handlers_kept, held, take_over
from storm_on_spark.spark.session.jvm.class_archive import find_archive
from storm_on_spark.spark.session.jvm.home import environment, linked_home, temporary_files_in
from storm_on_spark.spark.session.jvm.java import Java, require_java
from storm_on_spark.spark.session.jvm.silence import COMPLAINT, silence_its_end
from storm_on_spark.spark.session.logs import OutputPump, new_log_file
from storm_on_spark.spark.session.settings.classic import require_no_remote
from storm_on_spark.spark.session.settings.expected import active_context
from storm_on_spark.spark.session.settings.required import (
    BARE_FS_CLASS,
    BARE_FS_KEY,
    check_session,
    required_settings,
    with_attempts,
)
from storm_on_spark.spark.session.settings.started import (
    CLASS_PATH,
    JAVA_OPTIONS,
    LOG_KEY,
    MEMORY,
    cores,
    merged,
    on_this_machine,
    socket_setting,
    started_settings,
    with_jars,
    yarn_sockets,
)

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

__all__ = ["check_session", "local_session", "log_file", "stop_session"]

STARTED_WITH = tuple(
    f"storm_on_spark.spark.{name}" for name in ("compiled", "query.lowering", "running.topology", "query.sink")
)
"""Modules that the start of a topology needs. They are in higher layers, so this module may not import them."""
_LISTS = {"spark.archives": ",", "spark.executorEnv.PYTHONPATH": os.pathsep}
"""Settings that get longer where `spark-submit` has some of its own, and what stands between their parts."""
_STOP_SECS = 20.0
_READY_SECS = 4.0
"""How long a signal waits for the session to be ready, so that it can be ended in order."""
_KILLED_SECS = 5.0
"""How long the removal of the files of a killed JVM may take."""

_lock = threading.Lock()
_latest_log: Path | None = None
_pump: OutputPump | None = None
"""The pump of the JVM that we started. It ends when the JVM and the last Python worker have ended."""
_scratch: Path | None = None
"""That JVM's temporary files."""
_sockets: Path | None = None
"""The folder of its sockets; `_scratch` unless that has too long a path."""


def local_session(
    master: str | None = None, conf: Mapping[str, str] | None = None, checkpoint: str | os.PathLike[str] | None = None
) -> SparkSession:
    """Returns a SparkSession on this machine, made for topologies.

    A process has at most one Spark context: if there is one already, its session is returned as it is. Under
    `spark-submit`, or after an earlier session of other code, there is a JVM already. Then the settings that it was
    started with win, and ours are added. `check_session` says what such a session lacks.

    Args:
        master: `local[N]`, `local-cluster[...]` or a cluster's address; by default `local` with all cores. A
            local master gets four attempts per task unless it names another number.
        conf: settings of Spark that go before ours.
        checkpoint: the checkpoint of the topology; the jars for its store are put on the class path.

    Raises:
        SetupError: there is no Java that Spark runs on, or Spark does not start (the message names the log file), or
            PySpark would connect to a remote session, or the jars for the checkpoint's store can't be fetched.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with _lock:
        require_no_remote()
        if active_context() is not None:
            with InterruptsWait() as interrupts:
                session = SparkSession.builder.getOrCreate()
            interrupts.check()
            return session
        # The user stopped the session without `stop_session`. What a session reads from the environment is gone.
        _end_jvm()
        if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:  # noqa: SLF001
            return _join(master, dict(conf or {}))
        master = with_attempts(master or f"local[{cores()}]")
        return _start(master, with_jars(dict(conf or {}), checkpoint, master))


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
    """Stops `spark`. It is not an error if its JVM has ended already, for example because it was killed."""
    from py4j.protocol import Py4JNetworkError
    from pyspark.sql import SparkSession, SQLContext

    # Py4J complains if the JVM ended amid a command.
    root = logging.getLogger()
    root.addFilter(unheard := lambda record: record.msg != COMPLAINT)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM", RuntimeWarning)
            spark.stop()
    except (Py4JNetworkError, OSError):
        # PySpark's own `stop` ended at its first call of the JVM. The remaining steps need no JVM.
        spark.sparkContext.stop()
        SparkSession._instantiatedSession = SparkSession._activeSession = None  # noqa: SLF001 # as its stop() does
        SQLContext._instantiatedContext = None  # noqa: SLF001
    finally:
        root.removeFilter(unheard)


def log_file(spark: SparkSession | None = None) -> Path | None:
    """Returns the log file of `spark`, or of the session started last; None if we did not start it."""
    if spark is None:
        return _latest_log
    name = spark.sparkContext.getConf().get(LOG_KEY)
    return None if name is None else Path(name)


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
        bare_fs = jars.fetch(jars.BARE_LOCAL_FS) if on_this_machine(master) else None
        settings = merged(started_settings(master, log, scratch, bare_fs), conf)
        settings = socket_setting(master, scratch, _sockets) | settings
        # Only what the JVM must know before it runs goes on its command line, which other users can read.
        launch = SparkConf(loadDefaults=False)
        for key in (MEMORY, JAVA_OPTIONS, CLASS_PATH):
            if key in settings:
                launch.set(key, settings.pop(key))
        # For the executors of a local-cluster, Spark's script prepares more.
        quick = _quick_submit(java, bare_fs or (), launch) if master.startswith("local[") else None
        home = linked_home(scratch, quick) if on_this_machine(master) else None
        ahead = threading.Thread(target=_import_ahead, name="import-ahead", daemon=True)
        ahead.start()
        reader, writer = os.pipe()
        _pump = OutputPump(os.fdopen(reader, "rb"), log.with_suffix(".out"))
        _pump.start()
        output = {"stdout": writer, "stderr": writer}
        with environment(java, scratch, home):
            # An interrupt would make PySpark lose the process that it starts, and remove the folder that it writes to.
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
            # An interrupt here would make Py4J print tracebacks, and leave pandas half imported for good.
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


def _import_ahead() -> None:
    """Imports what the start of a topology needs, while the JVM starts and this process would only wait."""
    # An import that fails here fails again where it is needed, with a message.
    with contextlib.suppress(Exception):
        for module in STARTED_WITH:
            import_module(module)


def _join(master: str | None, conf: dict[str, str]) -> SparkSession:
    """Starts a session in a JVM that runs already, with our settings wherever it has none."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    SparkContext._ensure_initialized()  # noqa: SLF001 # connects: SparkConf sees spark-submit's settings
    given = dict(SparkConf().getAll())
    wanted = required_settings(bare_local_fs=given.get(BARE_FS_KEY) == BARE_FS_CLASS)
    wanted |= yarn_sockets(given.get("spark.master", master or "")) | conf
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


def _quick_submit(java: Java, bare_fs: tuple[Path, ...], launch: SparkConf) -> str | None:
    """Returns a script that starts the JVM more quickly than Spark's own, if there is an archive of its classes."""
    archive = find_archive(java, bare_fs)
    # The user's class path comes before Spark's jars, and an archive fits one class path only.
    if archive is None or launch.get(CLASS_PATH, "") != os.pathsep.join(map(str, bare_fs)):
        return None
    return archive.submit_script(java, launch.get(MEMORY, ""), launch.get(JAVA_OPTIONS, ""))


@atexit.register
def _end_at_exit() -> None:
    _end_jvm(exiting=True)


def _end_jvm(exiting: bool = False) -> None:
    """Ends the JVM that we started, if any, waits for it and removes its temporary files.

    A signal that ends this process kills the JVM, so that this returns soon.
    """
    if _scratch is None or f"-{os.getpid()}-" not in _scratch.name:
        return  # Nothing runs, or this is a forked child of the process that it belongs to.
    scratch = _scratch
    with held(lambda: kill_named(scratch), exiting):
        _clear_up()


def _end_by_signal(number: int, frame: FrameType | None) -> None:
    """Removes the session's files, then ends this process by the signal, which would have left them."""
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
    # PySpark may have started a JVM that it has not told us of.
    kill_named(_scratch)
    if _pump is not None:
        _pump.join(_STOP_SECS)
    for folder in (_scratch, _sockets):
        if folder is not None:
            remove_owned(folder)
    give_back(_end_by_signal)
    # The JVM of a driver that was killed may still have been running when this session began.
    remove_scratch_of_the_dead()
    _pump = _scratch = _sockets = None


def _end(process: subprocess.Popen[bytes]) -> None:
    # Spark's gateway ends when its standard input does.
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
