"""Starts the driver's JVM quickly: an archive of the classes that Spark and its first micro-batches load.

Java maps such an archive into memory instead of reading, checking and linking some 20 thousand classes at every start
(application class-data sharing, JEP 310). It is made once for each Java and each set of jars, and is never required.
With an archive, the JVM is also started without Spark's launcher, which is a separate JVM: the command line that the
launcher printed when the archive was made is kept beside it.

`storm_on_spark.spark.class_archive` makes it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from storm_on_spark.runtime.processes.parent import in_own_group
from storm_on_spark.spark.session.folders.dirs import cache_dir
from storm_on_spark.spark.session.jvm.java import Java

_log = logging.getLogger(__name__)

VERSION = 1
_MAX_RECORD_BYTES = 1 << 20
_MAIN_CLASS = "org.apache.spark.deploy.SparkSubmit"
_HARMLESS = frozenset(
    {"SPARK_HOME", "SPARK_LOCAL_DIRS", "SPARK_LOCAL_IP", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}
)
"""Variables of Spark that don't change the command with which its launcher starts a JVM.

The last two are what PySpark leaves behind in each process that has had a session.
"""
_OTHERS = frozenset({"HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_SUBMIT_ARGS"})
"""Variables that do, though they aren't called SPARK_something."""


@dataclass(frozen=True)
class ClassArchive:
    """An archive, and the command line that fits it."""

    path: Path
    class_path: tuple[str, ...]
    options: tuple[str, ...]
    """What Spark's launcher adds to the options of its user."""

    def submit_script(self, java: Java, memory: str, options: str) -> str:
        """Returns a shell script that does the same as Spark's `spark-submit`, quickly.

        Args:
            java: what to run.
            memory: the heap's size, as `spark.driver.memory`.
            options: as `spark.driver.extraJavaOptions`.
        """
        command = [
            *(str(java.home / "bin" / "java"), "-cp", os.pathsep.join(self.class_path), f"-Xmx{memory}"),
            *(f"-XX:SharedArchiveFile={self.path}", *shlex.split(options), *self.options, _MAIN_CLASS),
        ]
        # As the original: Spark wants equal strings to have equal hashes in all Python processes.
        return f'#!/bin/sh\nexport PYTHONHASHSEED=0\nexec {shlex.join(in_own_group(command))} "$@"\n'


def find_archive(
    java: Java, extra: Sequence[Path] = (), root: Path | None = None, env: Mapping[str, str] | None = None
) -> ClassArchive | None:
    """Returns the archive for a JVM on this machine, or None if there is none or it can't be used.

    Classes in an archive aren't checked again, so it must be this user's and nobody else's to write.

    Args:
        java: what the JVM is.
        extra: jars that come before Spark's.
        root: the cache; by default this user's.
        env: environment of the JVM; by default this process's.
    """
    if _reads_settings_elsewhere(os.environ if env is None else env):
        return None
    key = key_of(java, extra)
    folder = folder_of(root)
    if key is None or not (folder / f"{key}.json").exists():
        return None
    try:
        return read_archive(folder, key)
    except (OSError, ValueError, RecursionError) as error:
        _log.warning(
            "Spark starts without its archive of classes, which takes some seconds longer: %s. "
            "Make it again with: python -m storm_on_spark.spark.class_archive",
            error,
        )
        return None


def folder_of(root: Path | None) -> Path:
    """Returns the folder that holds archives: `root`, or this user's cache."""
    return cache_dir() / "classes" if root is None else root


def _reads_settings_elsewhere(env: Mapping[str, str]) -> bool:
    """Returns whether Spark's launcher would look into files, or at variables, that we don't know."""
    return any((name.startswith("SPARK_") and name not in _HARMLESS) or name in _OTHERS for name in env)


def key_of(java: Java, extra: Sequence[Path]) -> str | None:
    """Returns the name of the archive for a Java and its class path as they are now."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None or (Path(spec.origin).parent / "conf").exists():
        return None
    digest = hashlib.sha256(f"{VERSION}\n{java.home.resolve()}\n".encode())
    # Links are resolved, as on the class path of the archive: it fits by whichever path the jars are reached.
    jars = Path(spec.origin).resolve().parent / "jars"
    try:
        for path in (*(each.resolve() for each in extra), java.home / "release", *sorted(jars.iterdir())):
            found = path.stat()
            digest.update(f"{path}\t{found.st_size}\t{found.st_mtime_ns}\n".encode())
    except OSError:
        return None
    return digest.hexdigest()[:24]


def read_archive(folder: Path, key: str) -> ClassArchive:
    """Returns an archive that is whole and only this user's.

    Raises:
        OSError: a file is missing or can't be read.
        ValueError: it isn't.
    """
    archive, described = folder / f"{key}.jsa", folder / f"{key}.json"
    for path, is_kind in ((folder, stat.S_ISDIR), (archive, stat.S_ISREG), (described, stat.S_ISREG)):
        found = path.lstat()
        if not is_kind(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise ValueError(f"{path} must belong to this user, and nobody else may have access to it")
    with described.open("rb") as file:
        record = json.loads(file.read(_MAX_RECORD_BYTES))
    match record:
        case {"version": int(version), "bytes": int(size), "class_path": list(class_path), "options": list(options)}:
            pass
        case _:
            raise ValueError(f"{described} is not a description of an archive")
    if version != VERSION or not all(isinstance(text, str) for text in (*class_path, *options)):
        raise ValueError(f"{described} is not a description of an archive of version {VERSION}")
    if archive.stat().st_size != size:
        raise ValueError(f"{archive} has {archive.stat().st_size} bytes instead of {size}")
    return ClassArchive(archive, tuple(class_path), tuple(options))
