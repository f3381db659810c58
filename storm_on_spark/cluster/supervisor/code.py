"""Getting a topology's code ready to run: fetched, verified, unpacked, with what it requires. Nothing is imported."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storm_on_spark.cluster.code.checksums import check_topology_id
from storm_on_spark.cluster.code.distributor import CodeDistributor
from storm_on_spark.cluster.code.packing.bundle import Unpacked, unpack
from storm_on_spark.cluster.code.packing.requirements import install
from storm_on_spark.cluster.errors import CodeError
from storm_on_spark.cluster.records import CodeManifest
from storm_on_spark.runtime.processes.ending.at_once import temporary_folder


@dataclass(frozen=True)
class Ready:
    """Code that can be run."""

    unpacked: Unpacked
    packages: Path | None
    """The folder in which its requirements are installed."""


class CodeStore:
    """The code on a supervisor's disk.

    Args:
        folder: where it is kept.
        distributor: where it comes from.
    """

    def __init__(self, folder: Path, distributor: CodeDistributor) -> None:
        self._artifacts = folder / "code"
        self._packages = folder / "packages"
        self._distributor = distributor

    def prepare(self, manifest: CodeManifest, into: Path) -> Ready:
        """Fetches code and unpacks it.

        Code on this disk is verified again, so code that was changed here is never run.

        Args:
            manifest: what it must be.
            into: the folder for the code; its present content is removed.

        Raises:
            CodeError: it can't be had, is not what was uploaded, or what it requires can't be installed.
        """
        artifacts = self._artifacts / check_topology_id(manifest.topology_id)
        self._artifacts.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._distributor.download(manifest.topology_id, manifest.metafile, artifacts)
        try:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(into)
        except OSError as error:
            raise CodeError(f"{into} can't be removed: {error.strerror}") from error
        unpacked = unpack(artifacts, manifest, into)
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        if unpacked.python != here:
            raise CodeError(
                f"{manifest.topology_id} was packed by Python {unpacked.python}; this supervisor runs {here}"
            )
        return Ready(unpacked, self.installed(unpacked.requirements))

    def remove(self, topology_id: str) -> None:
        """Removes the artifacts of a removed topology."""
        shutil.rmtree(self._artifacts / check_topology_id(topology_id), ignore_errors=True)

    def installed(self, requirements: bytes | None) -> Path | None:
        """Installs the requirements into a folder that all topologies with the same requirements share."""
        if requirements is None or not re.search(rb"^[^\S\n]*[^#\s]", requirements, re.MULTILINE):
            return None
        key = hashlib.sha256(requirements + sys.version.encode()).hexdigest()[:32]
        target = self._packages / key
        if target.is_dir():
            return target
        self._packages.mkdir(mode=0o700, parents=True, exist_ok=True)
        with temporary_folder(".install-", self._packages) as scratch:
            made = install(requirements, scratch)
            with contextlib.suppress(FileExistsError, OSError):
                made.rename(target)  # unless another slot was quicker
        return target


def overlaid(code: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a topology's configuration: what came with the code, which has its secrets, under what ZooKeeper has.

    Example:
        >>> overlaid({"my.db": {"host": "a", "password": "b"}, "my.size": 1}, {"my.db": {"host": "c"}, "my.size": 2})
        {'my.db': {'host': 'c', 'password': 'b'}, 'my.size': 2}
    """
    merged = dict(code)
    for key, value in base.items():
        before = merged.get(key)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[key] = overlaid(before, value) if both else value  # type: ignore[arg-type]
    return merged
