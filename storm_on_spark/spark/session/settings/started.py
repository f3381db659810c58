"""The settings of a session that we start, and how they are merged with the user's."""

from __future__ import annotations

import os
import secrets
import site
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path

from storm_on_spark.api.errors import SetupError
from storm_on_spark.spark.session import jars
from storm_on_spark.spark.session.folders.dirs import SHORT_TEMPORARY
from storm_on_spark.spark.session.logs import LOG4J_CONFIGURATION
from storm_on_spark.spark.session.settings.required import STACK_SIZE, parallelism_of, required_settings

LOG_KEY = "spark.stormOnSpark.logFile"
MEMORY, JAVA_OPTIONS = "spark.driver.memory", "spark.driver.extraJavaOptions"
CLASS_PATH = "spark.driver.extraClassPath"
_EXECUTORS_CLASS_PATH = "spark.executor.extraClassPath"
_SOCKETS = "spark.python.unix.domain.socket.dir"
_HADOOP_AWS = "hadoop-aws"
_QUICK_START = "-XX:TieredStopAtLevel=1"
"""The JVM only moves opaque chunks; Python does the work. The optimizing compiler costs more than it gains. See
docs/decisions/0011-start-of-the-jvm.md."""
_STEADY_HEAP = "-XX:G1HeapRegionSize=4m -XX:-G1UseAdaptiveIHOP"
"""Spark's buffers of 1 MB are allocated as ordinary objects, and old objects are collected when they take 45 % of the
heap. Otherwise the heap grows to its limit. See docs/decisions/0035-steady-heap.md."""
_FEW_SAMPLES = "-XX:PerfDataSamplingInterval=1000"
"""The JVM keeps counters for `jstat` every second instead of every 50 ms, which takes 0.1 % of a core for ever."""


def started_settings(master: str, log: Path, scratch: Path, bare_fs: tuple[Path, ...] | None) -> dict[str, str]:
    """Returns the settings of a session that we start.

    Args:
        master: of the session.
        log: the file for the JVM's log.
        scratch: the JVM's folder for temporary files.
        bare_fs: the jars of the bare local file system. None without them.
    """
    settings = required_settings(bare_local_fs=bare_fs is not None) | {
        "spark.app.name": "storm-on-spark",
        MEMORY: "2g",
        JAVA_OPTIONS: f"{STACK_SIZE} {_QUICK_START} {_STEADY_HEAP} {_FEW_SAMPLES} {_java_options(log, scratch)}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.structuredLogging.enabled": "false",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.task.maxFailures": "4",
        "spark.locality.wait": "0s",
        "spark.python.daemon.module": "storm_on_spark.spark.worker_daemon",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(_user_path(sys.path)),
        LOG_KEY: str(log),
    }
    if bare_fs is not None:
        paths = os.pathsep.join(map(str, bare_fs))
        settings |= {CLASS_PATH: paths, _EXECUTORS_CLASS_PATH: paths}
    if on_this_machine(master):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Every user of the host reaches that address, and Spark's ports there take messages and give blocks.
            "spark.authenticate": "true",
            "spark.authenticate.secret": secrets.token_hex(32),
            # Shuffled data stays in this machine's memory, and ids hardly compress.
            "spark.shuffle.compress": "false",
        }
    if (slots := parallelism_of(master, {}, cores())) is not None:
        # For other queries on the session, such as a notebook's: by default 200 tasks would wait for these few slots.
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


def with_jars(conf: dict[str, str], checkpoint: str | os.PathLike[str] | None, master: str) -> dict[str, str]:
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

    executors = longer(_EXECUTORS_CLASS_PATH, os.pathsep) if on_this_machine(master) else longer("spark.jars", ",")
    return {**conf, **longer(CLASS_PATH, os.pathsep), **executors}


def merged(ours: dict[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """Returns both; the user's value wins, and lists of options and paths are joined."""
    merged = {**ours, **theirs}
    for key in ours.keys() & theirs.keys():
        if key.endswith("JavaOptions"):
            merged[key] = f"{ours[key]} {theirs[key]}"
        elif key.endswith("ClassPath"):
            merged[key] = os.pathsep.join((ours[key], theirs[key]))
    return merged


def socket_setting(master: str, scratch: Path, sockets: Path) -> dict[str, str]:
    """Returns the setting for the folder of the Python workers' sockets, if it is needed.

    Executors on other machines don't have the driver's folders. By default each JVM takes its own folder for temporary
    files, which is `scratch` for the driver's; if that has too long a path, only a folder that is everywhere suits all.
    """
    if on_this_machine(master):
        return {_SOCKETS: str(sockets)}
    return yarn_sockets(master) if sockets == scratch else {_SOCKETS: SHORT_TEMPORARY}


def yarn_sockets(master: str) -> dict[str, str]:
    """Returns the same setting if the master is YARN's: a container's folder for temporary files is always too deep."""
    return {_SOCKETS: SHORT_TEMPORARY} if master.startswith("yarn") else {}


def on_this_machine(master: str) -> bool:
    """Returns whether all of Spark's processes run on this machine."""
    return master.startswith("local")


def cores() -> int:
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _java_options(log: Path, scratch: Path) -> str:
    properties = {
        "log4j2.configurationFile": LOG4J_CONFIGURATION,
        "storm.log.file": log,
        "java.io.tmpdir": scratch,
    }
    return " ".join(f'"-D{key}={value}"' for key, value in properties.items())


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
