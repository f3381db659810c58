"""Code in HDFS, or in any other file system that Hadoop has a class for; the file system replicates it."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from storm_on_spark.cluster.code import folders
from storm_on_spark.cluster.code.checksums import artifacts_of, check_topology_id, copy_verified
from storm_on_spark.cluster.code.distributor import CodeDistributor, Metafile, Peers, location_of
from storm_on_spark.cluster.code.distributors.hadoop import HadoopGateway, settings_of, translated
from storm_on_spark.cluster.errors import ChecksumError, CodeError
from storm_on_spark.cluster.records import ArtifactInfo

_ID = re.compile(r"[A-Za-z0-9_-]+-\d+-\d+")
_PLACE = re.compile(r"\.?[0-9a-f]{32}")
"""The contents of a topology's folder, complete or not."""


class HadoopCodeDistributor(CodeDistributor):
    """Keeps code in the folder that `storm.codedistributor.location` names, such as `hdfs://nameserver:8020/storm`.

    The code of a topology is in `<location>/<topology id>/<checksum of its checksums>/`. Hadoop's configuration comes
    from `HADOOP_CONF_DIR` and the keys that start with `spark.hadoop.`.

    Args:
        peers: the cluster around it; not needed.
    """

    name: ClassVar[str] = "hdfs"

    def __init__(self, peers: Peers) -> None:
        super().__init__(peers)
        self._location = ""
        self._gateway = HadoopGateway({})

    def prepare(self, conf: Mapping[str, Any]) -> None:
        """Makes the folder."""
        self._location = location_of(conf, "a folder, such as hdfs://host:port/path").rstrip("/")
        self._gateway = HadoopGateway(settings_of(conf))
        try:
            files = self._files()
            with translated(self._location):
                if not files.mkdirs(self._gateway.path(self._location)):
                    raise CodeError(f"{self._location} can't be made")
        except CodeError:
            self.close()
            raise

    def upload(self, folder: Path, topology_id: str) -> str:
        """Copies the code there; its folder gets its name when all files are in it."""
        artifacts = artifacts_of(folder)
        place = self._place(topology_id, artifacts)
        files, path = self._files(), self._gateway.path
        with folders.scratch_of(Path(folder).absolute()) as copy, translated(place):
            if not self._holds(files, place, artifacts):
                # Java reads from private files that were checked.
                folders.store(artifacts, copy / "code", lambda info, file: copy_verified(folder, info, file))
                scratch = f"{self._location}/{topology_id}/.{uuid.uuid4().hex}"
                for info in artifacts:
                    source = self._gateway.local_path(copy / "code" / info.name)
                    files.copyFromLocalFile(False, True, source, path(f"{scratch}/{info.name}"))
                if files.exists(path(place)):
                    files.delete(path(place), True)
                files.rename(path(scratch), path(place))
                if not self._holds(files, place, artifacts):
                    raise CodeError(f"{place} differs from what was uploaded: another process writes there")
            for other in files.listStatus(path(f"{self._location}/{topology_id}")):
                if other.getPath().getName() != place.rpartition("/")[2]:
                    files.delete(other.getPath(), True)
        return Metafile(location=place, artifacts=artifacts).to_text()

    def download(self, topology_id: str, metafile: str, into: Path) -> list[Path]:
        """Copies the code from there."""
        artifacts, place = self._found(metafile, topology_id)
        into = into.absolute()
        if not folders.holds_all(into, artifacts):
            files = self._files()
            with folders.scratch_of(into) as scratch, translated(place):
                sizes = self._sizes(files, place)
                for info in artifacts:
                    if info.name not in sizes:
                        raise CodeError(f"{place}: {info.name} is not there")
                    if sizes[info.name] != info.size:
                        raise ChecksumError(f"{place}: {info.name} has not the {info.size:,} bytes that were uploaded")
                    # The last argument keeps Java from writing a checksum file beside it.
                    source = self._gateway.path(f"{place}/{info.name}")
                    files.copyToLocalFile(False, source, self._gateway.local_path(scratch / info.name), True)
                folders.store(artifacts, into, lambda info, file: copy_verified(scratch, info, file))
        return folders.paths_of(into, artifacts)

    def holds(self, topology_id: str, metafile: str) -> bool:
        """Returns whether all files are there, with their sizes; the file system itself has checksums."""
        artifacts, place = self._found(metafile, topology_id)
        files = self._files()
        with translated(place):
            return self._holds(files, place, artifacts)

    def _holds(self, files: Any, place: str, artifacts: Sequence[ArtifactInfo]) -> bool:
        sizes = self._sizes(files, place)
        return all(sizes.get(info.name) == info.size for info in artifacts)

    def _sizes(self, files: Any, place: str) -> dict[str, int]:
        folder = self._gateway.path(place)
        if not files.exists(folder):
            return {}
        return {status.getPath().getName(): status.getLen() for status in files.listStatus(folder)}

    def fetch(self, topology_id: str, metafile: str) -> None:
        """Checks that the code is there: all Nimbuses reach it."""
        if not self.holds(topology_id, metafile):
            raise CodeError(f"{self._location} lacks some code of {topology_id}")

    def get_replication_count(self, topology_id: str) -> int:
        """Returns on how many hosts the block with the fewest copies is."""
        folder = self._folder(topology_id)
        files = self._files()
        counts = []
        with translated(folder):
            root = self._gateway.path(folder)
            places = [] if not files.exists(root) else list(files.listStatus(root))
            for place in places:
                if place.getPath().getName().startswith("."):
                    continue
                for status in files.listStatus(place.getPath()):
                    blocks = files.getFileBlockLocations(status, 0, status.getLen())
                    counts += [len(block.getHosts()) for block in blocks]
        return min(counts, default=0)

    def stored(self) -> dict[str, float]:
        """Returns the topologies that have a folder, and since when; anything else there is ignored."""
        files = self._files()
        found: dict[str, float] = {}
        with translated(self._location):
            for status in files.listStatus(self._gateway.path(self._location)):
                if _ID.fullmatch(status.getPath().getName()) and status.isDirectory():
                    inside = [place.getPath().getName() for place in files.listStatus(status.getPath())]
                    if all(map(_PLACE.fullmatch, inside)):
                        found[status.getPath().getName()] = status.getModificationTime() / 1000
        return found

    def cleanup(self, topology_id: str) -> None:
        """Removes the topology's folder."""
        folder = self._folder(topology_id)
        files = self._files()
        with translated(folder):
            files.delete(self._gateway.path(folder), True)

    def close(self) -> None:
        """Ends the Java process."""
        self._gateway.close()

    def _files(self) -> Any:
        assert self._location, "prepare() comes first"
        return self._gateway.file_system(self._location)

    def _folder(self, topology_id: str) -> str:
        return f"{self._location}/{check_topology_id(topology_id)}"

    def _place(self, topology_id: str, artifacts: Sequence[ArtifactInfo]) -> str:
        digest = hashlib.sha256("".join(f"{info.name}={info.sha256}\n" for info in artifacts).encode())
        return f"{self._folder(topology_id)}/{digest.hexdigest()[:32]}"

    def _found(self, metafile: str, topology_id: str) -> tuple[Sequence[ArtifactInfo], str]:
        # The location in the metafile is for people: where to read is decided by the own configuration.
        artifacts = Metafile.of(metafile, topology_id).artifacts
        return artifacts, self._place(topology_id, artifacts)
