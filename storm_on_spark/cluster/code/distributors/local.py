"""Code on the Nimbuses' own disks: what one took in, the others fetch from it over HTTP."""

from __future__ import annotations

import contextlib
import random
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import httpx

from storm_on_spark.api.config import Config
from storm_on_spark.cluster.code import folders
from storm_on_spark.cluster.code.checksums import MAX_BYTES, artifacts_of, check_topology_id, copy_verified
from storm_on_spark.cluster.code.distributor import CodeDistributor, Metafile, Peers
from storm_on_spark.cluster.code.distributors import fetch
from storm_on_spark.cluster.code.settings import CodeSettings
from storm_on_spark.cluster.errors import CodeError
from storm_on_spark.cluster.records import ArtifactInfo


class LocalFileSystemCodeDistributor(CodeDistributor):
    """Keeps code below `storm.local.dir`; Storm's default.

    Every Nimbus fetches all of it. ZooKeeper has the number of Nimbuses that have it.

    Args:
        peers: the cluster around it.
        sleep: waits between attempts to fetch.
        shuffle: chooses whom to ask first.
    """

    name: ClassVar[str] = "local"
    shared: ClassVar[bool] = False

    def __init__(
        self,
        peers: Peers,
        *,
        sleep: Callable[[float], object] | None = None,
        shuffle: Callable[[list[Any]], object] = random.shuffle,
    ) -> None:
        super().__init__(peers)
        self._shuffle = shuffle
        self._root: Path | None = None
        self._http: httpx.Client | None = None
        self._closed = threading.Event()
        # Unlike `time.sleep` it ends when the distributor is closed.
        self._sleep = sleep or self._closed.wait
        self._lock = threading.Lock()
        #: What was found to be right, so that asking again costs no reading: folder -> (metafile, state of its files).
        self._right: dict[Path, tuple[str, object]] = {}

    def prepare(self, conf: Mapping[str, Any]) -> None:
        """Makes the folder, for its owner only."""
        key = Config.STORM_LOCAL_DIR
        root = Path(CodeSettings.of(conf).local_dir).absolute() / "nimbus" / "code"
        try:
            folders.make_private(root)
            root.chmod(0o700)
            # A supervisor beside a Nimbus must leave alone what that one is writing.
            if self.peers.address is not None:
                folders.remove_scratch(root)
        except OSError as error:
            raise CodeError(f"{key}: {root} can't be made: {error.strerror}") from error
        self._root = root
        self._http = fetch.client(self.peers.auth, self.peers.tls)

    def folder_of(self, topology_id: str) -> Path:
        """Returns the folder where this Nimbus has, or will have, the code of a topology."""
        assert self._root is not None, "prepare() comes first"
        return self._root / check_topology_id(topology_id)

    def path_of(self, topology_id: str, name: str) -> Path:
        """Returns the path of an artifact that is to be handed out to others.

        Raises:
            CodeError: there is no artifact of that name, or it isn't here.
        """
        path = self.folder_of(topology_id) / name
        if name not in MAX_BYTES or path.is_symlink() or not path.is_file():
            raise CodeError(f"there is no artifact {name[:100]!r} of {topology_id} here")
        return path

    def stored(self) -> dict[str, float]:
        """Returns the topologies whose code is in the own store, and since when."""
        assert self._root is not None, "prepare() comes first"
        found = {}
        for entry in sorted(self._root.iterdir()):
            with contextlib.suppress(FileNotFoundError):
                if not entry.name.startswith("."):
                    found[entry.name] = entry.stat().st_mtime
        return found

    def upload(self, folder: Path, topology_id: str) -> str:
        """Copies the code into the store; what is copied is what has the checksums of the metafile."""
        own = self.folder_of(topology_id)
        artifacts = artifacts_of(folder)
        if not folders.holds_all(own, artifacts):
            folders.store(artifacts, own, lambda info, file: copy_verified(folder, info, file))
        return Metafile(location="nimbus", artifacts=artifacts).to_text()

    def download(self, topology_id: str, metafile: str, into: Path) -> list[Path]:
        """Copies the code from the own store, or fetches it from other Nimbuses."""
        artifacts = Metafile.of(metafile, topology_id).artifacts
        into = into.absolute()
        if not folders.holds_all(into, artifacts):
            own = self.folder_of(topology_id)
            if into != own and folders.holds_all(own, artifacts):
                folders.store(artifacts, into, lambda info, file: copy_verified(own, info, file))
            else:
                self._fetch(topology_id, artifacts, into)
        return folders.paths_of(into, artifacts)

    def _fetch(self, topology_id: str, artifacts: Sequence[ArtifactInfo], into: Path) -> None:
        assert self._http is not None, "prepare() comes first"

        def others(topology_id: str) -> Sequence[str]:
            return [address for address in self.peers.holders(topology_id) if address != self.peers.address]

        fetching = fetch.Fetch(self._http, others, self._sleep, self._shuffle, self._closed, self.peers.tls.scheme)
        # It stays after a failure, for the next attempt to continue with.
        parts = into.parent / f".{into.name}.parts"
        try:
            with folders.locked(parts):
                if folders.holds_all(into, artifacts):
                    return
                for info in artifacts:
                    fetching.artifact(topology_id, info, parts / info.name)
                folders.store(artifacts, into, lambda info, file: copy_verified(parts, info, file))
                shutil.rmtree(parts)
        except OSError as error:
            raise folders.unwritable(into, error) from error

    def holds(self, topology_id: str, metafile: str) -> bool:
        """Returns whether the own store has the code, verified since it last changed."""
        own = self.folder_of(topology_id)
        try:
            state = _state(own)
            artifacts = Metafile.of(metafile, topology_id).artifacts
        except (OSError, CodeError):
            return False
        with self._lock:
            if self._right.get(own) == (metafile, state):
                return True
        right = folders.holds_all(own, artifacts)
        with self._lock:
            if right:
                self._right[own] = (metafile, state)
            else:
                self._right.pop(own, None)
        return right

    def fetch(self, topology_id: str, metafile: str) -> None:
        """Fetches the code into the own store."""
        self.download(topology_id, metafile, self.folder_of(topology_id))

    def get_replication_count(self, topology_id: str) -> int:
        """Returns how many live Nimbuses have registered that they have the code."""
        return len(set(self.peers.holders(check_topology_id(topology_id))))

    def cleanup(self, topology_id: str) -> None:
        """Removes the code from the own store."""
        own = self.folder_of(topology_id)
        with self._lock:
            self._right.pop(own, None)
        try:
            for folder in (own, own.with_name(f".{own.name}.parts")):
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(folder)
        except OSError as error:
            raise CodeError(f"{own} can't be removed: {error.strerror}") from error

    def close(self) -> None:
        """Closes the connections; a fetch that is under way ends with an error soon."""
        self._closed.set()
        if self._http is not None:
            self._http.close()


def _state(folder: Path) -> object:
    """Returns what changes when a file in the folder does."""
    entries = []
    for path in sorted(folder.iterdir()):
        status = path.lstat()
        entries.append((path.name, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return tuple(entries)
