"""Starts the topology that is compiled into this folder; README.md has the line for spark-submit.

This program needs only the standard library: everything else is in job.zip, which is unpacked for this process.
Executors get the archive from Spark. If Spark runs the driver on the cluster, it has already unpacked it there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ARCHIVE = "job.zip"
UNPACKED = "storm_job"
"""The archive's folder on executors, in the working directory."""
_FORMAT = 1


def main() -> None:
    """Runs the topology to its end."""
    with _folder() as (folder, archive):
        job = json.loads((folder / "job.json").read_text("utf-8"))
        _check(job)
        packages, code = str(folder / "python"), str(folder / "code")
        sys.path[:0] = [code, packages]
        from storm_on_spark.artifact.start import start

        start(folder, job, archive, UNPACKED)


@contextlib.contextmanager
def _folder() -> Iterator[tuple[Path, Path | None]]:
    """Yields the folder with the archive's files, and the archive if Spark does not have it yet."""
    archive = _here() / ARCHIVE
    if not archive.is_file():
        unpacked = Path(UNPACKED).absolute()
        if not (unpacked / "job.json").is_file():
            sys.exit(
                f"Error: there is neither {archive} nor {unpacked}. Keep main.py and {ARCHIVE} in one folder; where "
                f"Spark runs the driver on the cluster, add --archives {ARCHIVE}#{UNPACKED}, as README.md says"
            )
        yield unpacked, None
        return
    _verify(archive)
    folder, lock = _owned()
    try:
        with zipfile.ZipFile(archive) as content:
            for entry in content.infolist():
                path = content.extract(entry, folder)
                if entry.external_attr >> 16 & 0o100:
                    os.chmod(path, 0o700)  # noqa: PTH101 # a script, which zipfile makes a plain file
        yield folder, archive
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _owned() -> tuple[Path, int]:
    """Makes a folder with a name and a lock, by which a later start removes the leftovers of a killed driver.

    Elsewhere `storm_on_spark.spark.session.folders.owned` does this, but here it is still in the archive.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"storm-on-spark-{os.getpid()}-"))
        lock = os.open(folder / "owner.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock).st_nlink:
                return folder, lock
        except BlockingIOError:
            pass
        except OSError:  # The file system has no locks, so no other process gets one either.
            return folder, lock
        # Another start that removes leftovers was faster.
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)


def _here() -> Path:
    """Returns the folder of this file, or that in a variable if there is no file name, as on Databricks."""
    named = os.environ.get("STORM_SPARK_JOB")
    if named:
        return Path(named).absolute()
    return Path(globals().get("__file__", "main.py")).absolute().parent


def _verify(archive: Path) -> None:
    """Checks the archive against the folder's manifest, if that was copied too."""
    manifest = archive.with_name("manifest.json")
    if not manifest.is_file():
        return
    wanted = json.loads(manifest.read_text("utf-8"))["files"][ARCHIVE]["sha256"]
    with archive.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != wanted:
        sys.exit(
            f"Error: {archive} has SHA-256 {digest.hexdigest()}, and {manifest} says {wanted}: copy the folder again"
        )


def _check(job: dict[str, object]) -> None:
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if job["format"] != _FORMAT:
        sys.exit(
            f"Error: job.json has format {job['format']}; this main.py reads {_FORMAT}: copy the whole folder again"
        )
    if job["python"] != here:
        sys.exit(
            f"Error: this job was compiled with Python {job['python']}, and this is Python {here}, {sys.executable}. "
            f"Name a Python {job['python']} of this machine and of the executors by PYSPARK_PYTHON, or compile it "
            f"with {here}"
        )


if __name__ == "__main__":
    main()
