"""Optional jars: fetched once, checked, cached, never required.

Spark's wheel contains Ivy, which fetches from the public Maven repository and needs only Java. If Ivy reaches nothing
and `mvn` is installed (with a company's mirror in its settings, say), Maven fetches. After a failure there is no new
attempt for a day, so a machine without a network does not wait at every start.

`make setup` fetches all of them, by `main`.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.parent import die_with_parent
from storm_on_spark.spark.session.folders.dirs import cache_dir, writable_dir
from storm_on_spark.spark.session.folders.owned import owned_folder
from storm_on_spark.spark.session.jvm.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

_RETRY_AFTER_SECS = 24 * 3600.0
_LOADER = "org.apache.spark.util.MutableURLClassLoader"
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Jar:
    """One artifact of a Maven repository.

    `sha256` is part of its identity: code is only put on Spark's class path when it is what was tested.
    """

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Its name in the cache."""
        return f"{self.group}_{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


@dataclass(frozen=True)
class JarSet:
    """Jars that belong together, and what is missing without them."""

    name: str
    jars: tuple[Jar, ...]
    without: str
    patience_secs: float = 40.0
    """The longest time that one resolver may take."""


BARE_LOCAL_FS = JarSet(
    name="bare local file system",
    jars=(
        Jar(
            "com.globalmentor",
            "hadoop-bare-naked-local-fs",
            "0.1.0",
            "e0cc30fb0531eb0b59468dc0abf5b257533d2365b5e9f45e795edd707aa78c62",
        ),
    ),
    without="each micro-batch takes 100 to 200 ms longer, as Hadoop forks a shell for every checkpoint file",
)

S3A = JarSet(
    name="S3 file system",
    jars=(
        Jar(
            "org.apache.hadoop",
            "hadoop-aws",
            "3.5.0",
            "66bd9eefb938b1a1657487324b63c13df2d8b17164a1dd24e0ef37b905bc5baa",
        ),
        Jar(
            "software.amazon.awssdk",
            "bundle",
            "2.35.4",
            "db4b55f24ad1b4e70f17eb1717a4de76a8dadc5a27d764be7c44ff67b2c1c677",
        ),
        Jar(
            "software.amazon.s3.analyticsaccelerator",
            "analyticsaccelerator-s3",
            "1.3.1",
            "4959a9747cbb479c73c3ffbcd479bee5b014f8b2880994585a8693fb9d24675e",
        ),
    ),
    without="it can't reach s3a://",
    patience_secs=600.0,
)
"""For the Hadoop that pyspark 4.2.1 brings. Amazon's bundle is 690 MB, so it is fetched only for S3."""

ALL = (BARE_LOCAL_FS,)


def cached(jars: JarSet, root: Path | None = None) -> tuple[Path, ...] | None:
    """Returns the paths of the jars if the cache holds all of them, otherwise None."""
    folder = _folder(root)
    paths = tuple(folder / jar.file_name for jar in jars.jars)
    return paths if all(_is(path, jar) for path, jar in zip(paths, jars.jars, strict=True)) else None


def cache() -> Path:
    """Returns the folder of this user's jars."""
    return cache_dir() / "jars"


def fetch(
    jars: JarSet, root: Path | None = None, *, now: float | None = None, again: bool = False
) -> tuple[Path, ...] | None:
    """Returns the paths of the jars, fetched if the cache lacks them, or None if they can't be fetched.

    The first failure logs a warning that says what is lost without them. Several processes may call this at once.

    Args:
        jars: what to fetch.
        root: the cache; by default this user's.
        now: seconds since the epoch.
        again: try even if the last attempt failed within a day. Then the caller reports a failure; there is no warning.
    """
    found = cached(jars, root)
    if found is not None:
        return found
    now = time.time() if now is None else now
    folder = _folder(root)
    refused = folder / f"{jars.jars[0].artifact}.unavailable"
    try:
        if not again and now - refused.stat().st_mtime < _RETRY_AFTER_SECS:
            return None
    except OSError:
        pass
    if not (writable_dir(folder) and _fetch_missing(jars, folder)):
        with contextlib.suppress(OSError):
            refused.touch()
            os.utime(refused, (now, now))
        if not again:
            _log.warning(
                "Spark runs without the jar of the %s, which can't be fetched here: %s.", jars.name, jars.without
            )
        return None
    refused.unlink(missing_ok=True)
    return cached(jars, root)


def use(spark: SparkSession, jars: JarSet, provides: str) -> None:
    """Adds jars to a running session and its executors; fetches them if the cache lacks them.

    Args:
        spark: the session.
        jars: what it is to have.
        provides: a class of theirs. A session that has it already stays as it is.

    Raises:
        SetupError: the jars can't be had.
    """
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 # no public way to ask for a class
    if jvm.org.apache.spark.util.Utils.classIsLoadable(provides):
        return
    found = fetch(jars, again=True)
    if found is None:
        raise SetupError(
            f"Spark needs the jars {', '.join(map(str, jars.jars))}, which can't be fetched here; put them on the "
            "class path, say by spark.jars.packages, or fetch them where there is a network: storm-spark jars"
        )
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    while loader.getClass().getName() != _LOADER:
        loader = loader.getParent()
        if loader is None:
            raise SetupError(f"put the jars on the class path of Spark: {', '.join(map(str, found))}")
    for path in found:
        # spark-submit's loader is above all others. A loader of the session won't do: with it the driver can't read the
        # exceptions of tasks that have classes of the jar.
        loader.addURL(jvm.java.io.File(str(path)).toURI().toURL())
        spark.sparkContext._jsc.addJar(str(path))  # noqa: SLF001 # no public way


def _folder(root: Path | None) -> Path:
    return cache() if root is None else root


def _fetch_missing(jars: JarSet, folder: Path) -> bool:
    """Fetches what the cache lacks of a set, all in one run of a resolver; returns whether it lacks nothing then."""
    missing = [jar for jar in jars.jars if not _is(folder / jar.file_name, jar)]
    # Inside the cache, so that the rename at the end stays within one file system and is atomic.
    with owned_folder(folder) as scratch:
        for resolve in (with_ivy, with_maven):
            found = resolve(missing, scratch, jars.patience_secs)
            for jar in list(missing):
                path = found / f"{jar.artifact}-{jar.version}.jar"
                if not path.is_file():
                    continue
                if _is(path, jar):
                    path.replace(folder / jar.file_name)
                    missing.remove(jar)
                else:
                    _log.warning("%s was fetched but is not the file that was tested: not used.", jar)
            if not missing:
                return True
    return False


def _is(path: Path, jar: Jar) -> bool:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
    except OSError:
        return False
    return digest.hexdigest() == jar.sha256 and zipfile.is_zipfile(path)


def with_ivy(jars: list[Jar], scratch: Path, patience_secs: float) -> Path:
    """Returns the folder where the jars are that Ivy could get."""
    out = scratch / "ivy"
    java, ivy = find_java(), _ivy_jar()
    if java is None or ivy is None:
        return out
    settings, module = scratch / "ivysettings.xml", scratch / "ivy.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="central"/><resolvers>'
        '<ibiblio name="central" m2compatible="true"/></resolvers></ivysettings>'
    )
    dependencies = "".join(
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)}"
        ' conf="default->master" transitive="false"/>'
        for jar in jars
    )
    module.write_text(
        '<ivy-module version="2.0"><info organisation="storm-on-spark" module="jars"/><configurations>'
        f'<conf name="default"/></configurations><dependencies>{dependencies}</dependencies></ivy-module>'
    )
    command = [
        *(str(java.home / "bin" / "java"), "-jar", str(ivy), "-warn", "-settings", str(settings)),
        *("-cache", str(scratch / "ivy-cache"), "-types", "jar", "bundle", "-confs", "default", "-ivy", str(module)),
        *("-retrieve", f"{out}/[artifact]-[revision].jar"),
    ]
    _run(command, patience_secs)
    return out


def with_maven(jars: list[Jar], scratch: Path, patience_secs: float) -> Path:
    """Returns the folder where the jars are that Maven could get."""
    pom, out = scratch / "pom.xml", scratch / "mvn"
    maven = shutil.which("mvn")
    if maven is None:
        return out
    dependencies = "".join(
        f"<dependency><groupId>{escape(jar.group)}</groupId><artifactId>{escape(jar.artifact)}</artifactId>"
        f"<version>{escape(jar.version)}</version><exclusions><exclusion><groupId>*</groupId>"
        "<artifactId>*</artifactId></exclusion></exclusions></dependency>"
        for jar in jars
    )
    pom.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>storm-on-spark</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )
    command = [
        *(maven, "--batch-mode", "--quiet", "--file", str(pom)),
        *("dependency:copy-dependencies", f"-DoutputDirectory={out}"),
    ]
    _run(command, patience_secs)
    return out


def _ivy_jar() -> Path | None:
    # pyspark is located, not imported: importing it takes longer than looking into the cache.
    from importlib.util import find_spec

    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))), None)


def _run(command: list[str], patience_secs: float) -> None:
    try:
        done = subprocess.run(
            die_with_parent(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=patience_secs,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        _log.debug("%s: %s", command[0], error)
        return
    _log.debug("%s: exit code %s: %s", command[0], done.returncode, done.stdout[-2000:].decode(errors="replace"))


def main() -> int:
    """Fetches every jar set; the exit code tells whether all are there."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    missing = [jars.name for jars in ALL if fetch(jars) is None]
    return 1 if missing else 0
