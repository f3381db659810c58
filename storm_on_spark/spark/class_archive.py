"""Makes the archive of classes that `storm_on_spark.spark.session.jvm.class_archive` describes.

`python -m storm_on_spark.spark.class_archive` makes it; so does `make setup`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from storm_on_spark.api.errors import TopologyFailedError
from storm_on_spark.runtime.processes.ending.at_once import temporary_folder
from storm_on_spark.spark.session import jars, local_session, stop_session
from storm_on_spark.spark.session.folders.dirs import writable_dir
from storm_on_spark.spark.session.jvm.class_archive import (
    VERSION,
    ClassArchive,
    find_archive,
    folder_of,
    key_of,
    read_archive,
)
from storm_on_spark.spark.session.jvm.java import Java, find_java
from storm_on_spark.spark.warm_up import warm_up

_log = logging.getLogger(__name__)

_KEPT = 3
"""Archives of other Javas and virtual environments that stay in the cache; each takes some 150 MB."""
_DUMP_SECS = 600.0
_LIST_OPTION = "-XX:DumpLoadedClassList="


def make_archive(java: Java, extra: Sequence[Path] = (), root: Path | None = None) -> ClassArchive | None:
    """Makes the archive, by a run of a small topology; takes half a minute. Returns None where that fails.

    Raises:
        SetupError: Spark does not start.
    """
    folder = folder_of(root)
    key = key_of(java, extra)
    if key is None or not writable_dir(folder):
        return None
    _discard(folder, key)
    # Inside the cache, so that the rename at the end stays within one file system and is atomic.
    with temporary_folder(".make-", folder) as scratch:
        classes, archive = scratch / "classes", scratch / "archive"
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
            "version": VERSION,
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
    return read_archive(folder, key)


def _rehearse(classes: Path) -> tuple[list[str], list[str]]:
    """Runs a topology, has Java write down which classes it loads, and returns the JVM's class path and options."""
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
