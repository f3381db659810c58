"""The Python packages that travel in an artifact: Storm on Spark, what it needs, and a topology's requirements."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import storm_on_spark
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.errors import CodeError

_NAME: Final = "storm-on-spark"
SPARKS: Final = ("pyspark", "py4j")
"""Spark provides these."""
SPARK_NEEDS: Final = ("pyarrow", "pandas", "numpy", "protobuf", "grpcio", "googleapis-common-protos")
"""PySpark needs these for Arrow and for state, so executors that run Python usually have them."""
_LEFT_OUT: Final = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json", "uv_build.json"})
"""Files that record how a package was installed; they would make artifacts of the same packages differ."""
MAX_BYTES: Final = 4 << 30


@dataclass
class Packages:
    """Packages to be packed."""

    files: dict[str, Path] = field(default_factory=dict)
    """Path below the folder of packages -> the file."""
    versions: dict[str, str] = field(default_factory=dict)
    """Distribution -> version."""

    def add(self, name: str, path: Path) -> None:
        """Adds a file, unless it records how a package was installed; the first file of a name wins."""
        parts = name.split("/")
        if "__pycache__" in parts or name.endswith((".pyc", ".pyo", ".pth")) or parts[-1] in _LEFT_OUT:
            return
        self.files.setdefault(name, path.resolve())

    def check(self) -> None:
        """Checks that all together are not too large.

        Raises:
            CodeError: they are.
        """
        total = sum(path.stat().st_size for path in self.files.values())
        if total > MAX_BYTES:
            raise CodeError(
                f"the packages have {total >> 20:,} MiB; an artifact may have {MAX_BYTES >> 20:,} MiB. Install the "
                "large ones on the executors instead"
            )


def collect(installed: Path | None = None, *, with_spark_needs: bool = False) -> Packages:
    """Returns a topology's own requirements, then Storm on Spark and its dependencies from this environment.

    Args:
        installed: where pip has installed those requirements; they override packages of this environment.
        with_spark_needs: whether to include `SPARK_NEEDS`.

    Raises:
        SetupError: a required package isn't installed here.
        CodeError: they are too large.
    """
    found = Packages()
    if installed is not None:
        _add_installed(found, installed)
    _add_ours(found)
    for name, dist in sorted(_needed(with_spark_needs).items()):
        if name not in found.versions:
            found.versions[name] = dist.version
            for file in dist.files or ():
                path = Path(str(dist.locate_file(file)))
                if ".." not in file.parts and path.is_file():
                    found.add(file.as_posix(), path)
    found.check()
    return found


def _add_installed(found: Packages, folder: Path) -> None:
    skipped: set[str] = set()
    for dist in importlib.metadata.distributions(path=[str(folder)]):
        name = _normal(dist.metadata["Name"])
        if name in SPARKS or name == _NAME:
            skipped |= {file.as_posix() for file in dist.files or ()}
        else:
            found.versions[name] = dist.version
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        # pip puts scripts beside the packages; their first lines name this machine's Python.
        if path.is_file() and name not in skipped and not name.startswith("bin/"):
            found.add(name, path)


def _add_ours(found: Packages) -> None:
    package = Path(storm_on_spark.__file__).parent
    for path in sorted(package.rglob("*")):
        name = path.relative_to(package.parent).as_posix()
        if path.is_file() and not any(part.startswith(".") for part in name.split("/")):
            found.add(name, path)
    found.versions[_NAME] = storm_on_spark.__version__


def _needed(with_spark_needs: bool) -> dict[str, importlib.metadata.Distribution]:
    """Returns the direct and indirect dependencies of Storm on Spark, by normalized name."""
    skipped = {*SPARKS, *(() if with_spark_needs else SPARK_NEEDS)}
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(_requirements(_distribution(_NAME)))
    while waiting:
        name = waiting.pop()
        if name in found or name in skipped:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform or Python version: the installed packages work without it
        waiting += _requirements(found[name])
    return found


def _distribution(name: str) -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError as error:
        raise SetupError(
            f"{name} is not installed as a package here, so what it needs is not known: pip install {name}"
        ) from error


def _requirements(dist: importlib.metadata.Distribution) -> Iterator[str]:
    for line in dist.requires or ():
        requirement, _, marker = line.partition(";")
        name = re.match(r"\s*([A-Za-z0-9._-]+)", requirement)
        if name is not None and "extra" not in marker:
            yield _normal(name[1])


def _normal(name: str) -> str:
    """Returns a distribution's name, normalized as in PEP 503.

    >>> _normal("Googleapis_Common.protos")
    'googleapis-common-protos'
    """
    return re.sub(r"[-_.]+", "-", name).lower()
