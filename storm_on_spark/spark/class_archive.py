"""A quick start of the driver's JVM: an archive of the classes that Spark and its first micro-batches load.

Java maps such an archive into memory instead of reading, checking and linking some 20 thousand classes at every start
(application class-data sharing, JEP 310). It is made once for each Java and each set of jars, and is never required.
Where there is one, the JVM is also started without Spark's launcher, which is a JVM of its own: what the launcher said
when the archive was made is kept beside it.

`python -m storm_on_spark.spark.class_archive` makes it; `make setup` does so, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from storm_on_spark.api.errors import TopologyFailedError
from storm_on_spark.spark import jars
from storm_on_spark.spark.dirs import cache_dir, writable_dir
from storm_on_spark.spark.java import Java, find_java

_log = logging.getLogger(__name__)

_VERSION = 1
_KEPT = 3
"""Archives of other Javas and virtual environments that stay in the cache; each takes some 150 MB."""
_DUMP_SECS = 600.0
_MAX_RECORD_BYTES = 1 << 20
_LIST_OPTION = "-XX:DumpLoadedClassList="
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
        return f'#!/bin/sh\nexport PYTHONHASHSEED=0\nexec {shlex.join(command)} "$@"\n'


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
    key = _key(java, extra)
    folder = _folder(root)
    if key is None or not (folder / f"{key}.json").exists():
        return None
    try:
        return _read(folder, key)
    except (OSError, ValueError, RecursionError) as error:
        _log.warning(
            "Spark starts without its archive of classes, which takes some seconds longer: %s. "
            "Make it anew with: python -m storm_on_spark.spark.class_archive",
            error,
        )
        return None


def make_archive(java: Java, extra: Sequence[Path] = (), root: Path | None = None) -> ClassArchive | None:
    """Makes the archive, by a run of a small topology; takes half a minute. Returns None where that fails.

    Raises:
        SetupError: Spark does not start.
    """
    folder = _folder(root)
    key = _key(java, extra)
    if key is None or not writable_dir(folder):
        return None
    _discard(folder, key)
    # Inside the cache, so that the rename at the end stays within one file system and is atomic.
    with tempfile.TemporaryDirectory(prefix=".make-", dir=folder) as scratch:
        classes, archive = Path(scratch, "classes"), Path(scratch, "archive")
        try:
            class_path, options = _rehearse(classes)
        except TopologyFailedError as error:
            _log.warning("No archive of classes is made: %s.", error.reason)
            return None
        command = [
            *(str(java.home / "bin" / "java"), "-Xshare:dump", "-Xlog:disable", "-Xlog:all=error:stderr"),
            *(f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={archive}"),
            *("-cp", os.pathsep.join(class_path), *options),
        ]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_DUMP_SECS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            _log.warning("Java makes no archive of classes here: %s.", error)
            return None
        if done.returncode != 0 or not archive.is_file():
            said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
            _log.warning("Java makes no archive of classes here: %s.", said[-1] if said else f"exit {done.returncode}")
            return None
        archive.chmod(0o600)
        record = {
            "version": _VERSION,
            "bytes": archive.stat().st_size,
            "class_path": class_path,
            "options": options,
        }
        described = Path(scratch, "record")
        described.touch(0o600)
        described.write_text(json.dumps(record))
        archive.replace(folder / f"{key}.jsa")
        described.replace(folder / f"{key}.json")
    _forget_old(folder)
    return _read(folder, key)


def _rehearse(classes: Path) -> tuple[list[str], list[str]]:
    """Runs a topology, has Java write down which classes it loads, and returns the JVM's class path and options."""
    from storm_on_spark.spark.session import local_session, stop_session
    from storm_on_spark.spark.warm_up import warm_up

    option = f"{_LIST_OPTION}{classes}"
    session = local_session(conf={"spark.driver.extraJavaOptions": shlex.quote(option)})
    try:
        jvm: Any = session.sparkContext._jvm  # noqa: SLF001 # PySpark has no public way to the JVM's arguments
        arguments = list(jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())
        entries = str(jvm.java.lang.System.getProperty("java.class.path")).split(os.pathsep)
        # Jars are reached through links in a folder that is the session's own; an archive wants a path that stays.
        class_path = [str(Path(entry).resolve()) for entry in entries if Path(entry).is_file()]
        warm_up(session)
    finally:
        stop_session(session)
    return class_path, arguments[arguments.index(option) + 1 :]


def _folder(root: Path | None) -> Path:
    return cache_dir() / "classes" if root is None else root


def _reads_settings_elsewhere(env: Mapping[str, str]) -> bool:
    """Returns whether Spark's launcher would look into files, or at variables, that we don't know."""
    return any((name.startswith("SPARK_") and name not in _HARMLESS) or name in _OTHERS for name in env)


def _key(java: Java, extra: Sequence[Path]) -> str | None:
    """Returns the name of the archive for a Java and its class path as they are now."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None or (Path(spec.origin).parent / "conf").exists():
        return None
    digest = hashlib.sha256(f"{_VERSION}\n{java.home.resolve()}\n".encode())
    try:
        for path in (*extra, java.home / "release", *sorted((Path(spec.origin).parent / "jars").iterdir())):
            found = path.stat()
            digest.update(f"{path}\t{found.st_size}\t{found.st_mtime_ns}\n".encode())
    except OSError:
        return None
    return digest.hexdigest()[:24]


def _read(folder: Path, key: str) -> ClassArchive:
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
            raise ValueError(f"{described} is no description of an archive")
    if version != _VERSION or not all(isinstance(text, str) for text in (*class_path, *options)):
        raise ValueError(f"{described} is no description of an archive of version {_VERSION}")
    if archive.stat().st_size != size:
        raise ValueError(f"{archive} has {archive.stat().st_size} bytes instead of {size}")
    return ClassArchive(archive, tuple(class_path), tuple(options))


def _discard(folder: Path, key: str) -> None:
    # Its description first: without it, there is no archive.
    for suffix in ("json", "jsa"):
        with contextlib.suppress(OSError):
            (folder / f"{key}.{suffix}").unlink()


def _forget_old(folder: Path) -> None:
    found = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found[_KEPT:]:
        _discard(folder, path.stem)


def main() -> int:
    """Makes the archive if there is none; the exit code tells whether there is one."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    java = find_java()
    if java is None:
        return 1
    extra = jars.fetch(jars.BARE_LOCAL_FS) or ()
    if find_archive(java, extra) is not None:
        return 0
    print("Making an archive of Spark's classes, for quick starts: half a minute, once.", file=sys.stderr)  # noqa: T201
    return 0 if make_archive(java, extra) is not None else 1


if __name__ == "__main__":
    sys.exit(main())
