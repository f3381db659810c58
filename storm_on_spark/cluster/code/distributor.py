"""Distribution of a topology's code from the Nimbus that accepted it to all hosts that need it.

The interface is Storm's `ICodeDistributor` with two questions more. `holds` and `fetch` are for a Nimbus that wants to
lead: with the local file system the code must be on its own disk, with HDFS and Delta it must be in the storage that
all of them reach.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from storm_on_spark.api.config import Config
from storm_on_spark.cluster.code.checksums import check_artifacts
from storm_on_spark.cluster.code.settings import CodeSettings
from storm_on_spark.cluster.errors import CodeError, RecordError
from storm_on_spark.cluster.records import ArtifactInfo, Record, decode, encode
from storm_on_spark.cluster.security.tls import Tls

if TYPE_CHECKING:
    import httpx


def _nobody(topology_id: str) -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class Peers:
    """The part of the cluster that a distributor may use."""

    address: str | None = None
    """`host:port` of the Nimbus that it belongs to; None in a supervisor."""
    holders: Callable[[str], Sequence[str]] = _nobody
    """Topology id -> addresses of the live Nimbuses that have its code; asked again for every attempt."""
    auth: httpx.Auth | None = field(default=None, repr=False)
    """Proves each HTTP request with the cluster's token, where there is one; the token itself is never sent."""
    tls: Tls = field(default_factory=Tls)
    """How other Nimbuses are known."""


class Metafile(Record, frozen=True):
    """A distributor's reference to a topology's code; opaque to all other code."""

    location: str
    artifacts: tuple[ArtifactInfo, ...]
    table_version: int | None = None
    """With Delta: the version of the table that first had the code."""

    def to_text(self) -> str:
        """Returns it as in `CodeManifest.metafile`."""
        return encode(self).decode()

    @classmethod
    def of(cls, text: str, topology_id: str) -> Metafile:
        """Returns what `to_text` wrote, checked.

        Raises:
            CodeError: it is something else.
        """
        try:
            found = decode(cls, text.encode(), f"metafile of {topology_id}")
        except RecordError as error:
            raise CodeError(str(error)) from error
        check_artifacts(found.artifacts, f"metafile of {topology_id}")
        return found


class CodeDistributor(ABC):
    """Stores the artifacts of topologies and hands them out.

    All methods may be called from several threads. Each one can be repeated after a failure, and does no harm when what
    it is to do was done already. Code that was never uploaded completely does not exist for anybody.
    """

    name: ClassVar[str]
    """What `CodeManifest.distributor` says."""
    shared: ClassVar[bool] = True
    """Whether the storage is one that all Nimbuses use; then its leader clears it up."""

    def __init__(self, peers: Peers) -> None:
        self.peers = peers

    @abstractmethod
    def prepare(self, conf: Mapping[str, Any]) -> None:
        """Makes ready for work; called once, before anything else.

        Raises:
            CodeError: the storage can't be reached, or a setting is missing.
        """

    @abstractmethod
    def upload(self, folder: Path, topology_id: str) -> str:
        """Stores the artifacts in `folder` and returns the metafile.

        When it returns, the code survives the end of this process. The same code uploaded again is the same; other code
        under the same id takes the place of what was there.

        Raises:
            CodeError: what is in the folder is not a topology's code, or it can't be stored.
        """

    @abstractmethod
    def download(self, topology_id: str, metafile: str, into: Path) -> list[Path]:
        """Brings the artifacts into the folder `into`, and returns where they are, sorted.

        The folder appears at once, with all artifacts, and every one with the checksum that is in the metafile; or
        it does not appear. If it is there already and right, nothing is fetched; if it is wrong it is replaced. Parts
        that were fetched before a failure are used by the next attempt.

        Raises:
            CodeError: no Nimbus has the code, or the storage can't be reached.
            ChecksumError: the stored code differs from the uploaded code.
        """

    @abstractmethod
    def holds(self, topology_id: str, metafile: str) -> bool:
        """Returns whether a Nimbus with this distributor has the code, so that it may lead."""

    @abstractmethod
    def fetch(self, topology_id: str, metafile: str) -> None:
        """Makes `holds` true, by a download where the code has to be here.

        Raises:
            CodeError: as `download`.
        """

    @abstractmethod
    def get_replication_count(self, topology_id: str) -> int:
        """Returns how many copies of the code there are; 0 if there is none."""

    def stored(self) -> Mapping[str, float]:
        """Returns the topologies of which there is any code, also such that was not stored completely, and since when.

        This tells which code can be removed, as no other Nimbus knows it; without an answer it stays.

        Returns:
            Topology id -> when the last of it was stored, in seconds since the epoch.

        Raises:
            CodeError: the storage can't be reached.
        """
        return {}

    @abstractmethod
    def cleanup(self, topology_id: str) -> None:
        """Removes the code; what isn't there is no error.

        Raises:
            CodeError: the storage can't be reached.
        """

    @abstractmethod
    def close(self) -> None:
        """Gives back what the distributor holds: connections, processes."""


def location_of(conf: Mapping[str, Any], what: str) -> str:
    """Returns `storm.codedistributor.location`, which a shared storage needs.

    Raises:
        CodeError: it isn't set.
    """
    location = CodeSettings.of(conf).location
    if not location:
        raise CodeError(f"{Config.STORM_CODEDISTRIBUTOR_LOCATION} must be {what}; it isn't set")
    return location


_CLASSES = {
    "local": "storm_on_spark.cluster.code.distributors.local:LocalFileSystemCodeDistributor",
    "hdfs": "storm_on_spark.cluster.code.distributors.hdfs:HadoopCodeDistributor",
    "delta": "storm_on_spark.cluster.code.distributors.delta:DeltaCodeDistributor",
}
"""Short names."""

_STORMS = {
    "org.apache.storm.codedistributor.LocalFileSystemCodeDistributor": "local",
    "backtype.storm.codedistributor.LocalFileSystemCodeDistributor": "local",
    "org.apache.storm.hdfs.ha.codedistributor.HDFSCodeDistributor": "hdfs",
    "org.apache.storm.hdfs.codedistributor.HDFSCodeDistributor": "hdfs",
}
"""Names of Storm's classes, before the blob store took their place."""


def make_distributor(conf: Mapping[str, Any], peers: Peers | None = None) -> CodeDistributor:
    """Returns the distributor that `storm.codedistributor.class` names, ready for work.

    The name is `local`, `hdfs` or `delta`, that of one of Storm's classes, or `package.module:Class` of your own.

    Raises:
        CodeError: there is no such distributor, or it can't work here.

    Example:
        >>> make_distributor({"storm.codedistributor.class": "ftp"})
        Traceback (most recent call last):
        ...
        storm_on_spark.cluster.errors.CodeError: storm.codedistributor.class: there is no code distributor 'ftp', only \
local, hdfs, delta and your own classes as package.module:Class
    """
    key = Config.STORM_CODEDISTRIBUTOR_CLASS
    named = CodeSettings.of(conf).distributor
    name = _STORMS.get(named, named)
    module, colon, attribute = _CLASSES.get(name, name).partition(":")
    if not colon:
        raise CodeError(
            f"{key}: there is no code distributor {name!r}, only {', '.join(_CLASSES)} and your own classes "
            "as package.module:Class"
        )
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise CodeError(f"{key}: {name!r} can't be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, CodeDistributor)):
        raise CodeError(f"{key}: {name!r} is not a subclass of CodeDistributor")
    distributor = found(Peers() if peers is None else peers)
    distributor.prepare(conf)
    return distributor
