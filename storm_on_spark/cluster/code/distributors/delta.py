"""Code as rows of a Delta table: versioned, transactional, on any storage that Delta reaches, without a JVM.

One row is one piece of one artifact:

    topology_id string · name string · chunk int · bytes binary · sha256 string · uploaded_at timestamp

`sha256` is that of the whole artifact. The table is partitioned by topology, so an upload is one transaction that
replaces one partition: readers see all of it or nothing, and topologies don't get in each other's way. What was removed
can be read in earlier versions of the table until Delta's retention is over (a week).
"""

from __future__ import annotations

import datetime
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, TypeVar

from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.cluster.code import folders
from storm_on_spark.cluster.code.checksums import artifacts_of, check_topology_id, copy_verified
from storm_on_spark.cluster.code.distributor import CodeDistributor, Metafile, Peers, location_of
from storm_on_spark.cluster.errors import ChecksumError, CodeError
from storm_on_spark.cluster.records import ArtifactInfo

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyarrow.dataset import Dataset, Expression

_log = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
_ROWS_AT_ONCE = 8
"""Rows in memory: a group of the files' rows, a batch."""
_ATTEMPTS = 20
_T = TypeVar("_T")


class DeltaCodeDistributor(CodeDistributor):
    """Keeps code in the Delta table that `storm.codedistributor.location` names: a path, or a URI such as `s3://`.

    Access to object stores is configured by their environment variables, as the `deltalake` package reads them.

    Args:
        peers: the cluster around it; not needed.
        sleep: waits before a transaction is tried again.
        now: seconds since the epoch.
    """

    name: ClassVar[str] = "delta"

    def __init__(
        self,
        peers: Peers,
        *,
        sleep: Callable[[float], object] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(peers)
        self._sleep = sleep
        self._now = now
        self._location = ""
        self._lock = threading.Lock()
        #: The table as it was read last, its version, and the files of that; changes under the lock.
        self._last: tuple[DeltaTable, int, Dataset] | None = None

    def prepare(self, conf: Mapping[str, Any]) -> None:
        """Makes the table if there is none."""
        try:
            from deltalake import DeltaTable
        except ImportError as error:
            raise CodeError(needs_extra("code in a Delta table", "delta", "deltalake")) from error
        self._location = location_of(conf, "a path or URI of a Delta table")
        schema = _schema()

        def create() -> DeltaTable:
            return DeltaTable.create(self._location, schema, mode="ignore", partition_by=["topology_id"])

        self._attempt("make the table", create)
        names = [field.name for field in self._table().schema().fields]
        if names != schema.names:
            raise CodeError(
                f"{self._location}: a Delta table with the columns {', '.join(names)}, not {', '.join(schema.names)}"
            )

    def upload(self, folder: Path, topology_id: str) -> str:
        """Writes the code in one transaction; several Nimbuses may do so at the same time."""
        import pyarrow as pa
        from deltalake import WriterProperties, write_deltalake

        check_topology_id(topology_id)
        artifacts = artifacts_of(folder)
        schema = _schema()
        with folders.scratch_of(Path(folder).absolute()) as copy:
            # Rows are written from private files that were checked.
            folders.store(artifacts, copy / "code", lambda info, file: copy_verified(folder, info, file))

            def write() -> None:
                rows = _rows(copy / "code", topology_id, artifacts, self._now(), schema)
                write_deltalake(
                    self._location,
                    pa.RecordBatchReader.from_batches(schema, rows),
                    mode="overwrite",
                    predicate=f"topology_id = '{topology_id}'",
                    writer_properties=WriterProperties(max_row_group_size=_ROWS_AT_ONCE, compression="UNCOMPRESSED"),
                )

            self._attempt(f"write {topology_id}", write)
        version = self._table().version()
        return Metafile(location=self._location, artifacts=artifacts, table_version=version).to_text()

    def download(self, topology_id: str, metafile: str, into: Path) -> list[Path]:
        """Reads the rows of the newest version of the table."""
        artifacts = self._metafile(metafile, topology_id).artifacts
        into = into.absolute()
        if not folders.holds_all(into, artifacts):
            with folders.scratch_of(into) as scratch:
                self._attempt(f"read {topology_id}", lambda: self._read(topology_id, artifacts, scratch))
                folders.store(artifacts, into, lambda info, file: copy_verified(scratch, info, file))
        return folders.paths_of(into, artifacts)

    def _read(self, topology_id: str, artifacts: Sequence[ArtifactInfo], scratch: Path) -> None:
        infos = {info.name: info for info in artifacts}
        for info in artifacts:
            (scratch / info.name).unlink(missing_ok=True)
            folders.create(scratch / info.name).close()
        rows = 0
        for batch in self._batches(topology_id, ["name", "chunk", "bytes"]):
            for row in batch.to_pylist():
                known = infos.get(row["name"])
                if known is None:
                    continue
                rows += 1
                with (scratch / known.name).open("r+b") as file:
                    _put(file, known, row["chunk"], row["bytes"], topology_id)
        if rows == 0:
            raise CodeError(f"{self._location}: it has no code of {topology_id}")

    def holds(self, topology_id: str, metafile: str) -> bool:
        """Returns whether the table has all rows; their bytes are not read."""
        artifacts = self._metafile(metafile, topology_id).artifacts
        wanted = {(info.name, chunk, info.sha256) for info in artifacts for chunk in range(_chunks(info.size))}
        found: set[tuple[str, int, str]] = set()

        def read() -> None:
            found.clear()
            for batch in self._batches(topology_id, ["name", "chunk", "sha256"]):
                found.update((row["name"], row["chunk"], row["sha256"]) for row in batch.to_pylist())

        self._attempt(f"look for {topology_id}", read)
        return wanted <= found

    def fetch(self, topology_id: str, metafile: str) -> None:
        """Checks that the table has the code: all Nimbuses reach it."""
        if not self.holds(topology_id, metafile):
            raise CodeError(f"{self._location}: it lacks some code of {topology_id}")

    def get_replication_count(self, topology_id: str) -> int:
        """Returns how many live Nimbuses have found all code of the topology in the table; 0 if there is none.

        How often the storage keeps it is the storage's affair, and nobody can ask it. What a client can be told is from
        how many Nimbuses the code can be had: any of those can lead.
        """
        rows = self._attempt("count rows", lambda: self._dataset().count_rows(filter=_partition(topology_id)))
        return max(1, len(self.peers.holders(topology_id))) if rows else 0

    def stored(self) -> dict[str, float]:
        """Returns the topologies that have rows, and since when."""
        found: dict[str, float] = {}

        def read() -> None:
            found.clear()
            for batch in self._dataset().scanner(columns=["topology_id", "uploaded_at"]).to_batches():
                for row in batch.to_pylist():
                    at = row["uploaded_at"].timestamp()
                    found[row["topology_id"]] = max(at, found.get(row["topology_id"], at))

        self._attempt("look for topologies", read)
        return found

    def cleanup(self, topology_id: str) -> None:
        """Removes the rows, and files that are older than Delta's retention."""
        check_topology_id(topology_id)
        predicate = f"topology_id = '{topology_id}'"
        self._attempt(f"remove {topology_id}", lambda: self._table().delete(predicate))
        try:
            self._attempt("remove old files", lambda: self._table().vacuum(dry_run=False))
        except CodeError as error:
            # The rows are gone; the next removal tries again.
            _log.warning("%s", error)

    def close(self) -> None:
        """Does nothing: connections last for single operations."""

    def _metafile(self, text: str, topology_id: str) -> Metafile:
        check_topology_id(topology_id)
        return Metafile.of(text, topology_id)

    def _table(self) -> DeltaTable:
        from deltalake import DeltaTable

        assert self._location, "prepare() comes first"
        return DeltaTable(self._location)

    def _batches(self, topology_id: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        scanner = self._dataset().scanner(
            columns=columns,
            filter=_partition(topology_id),
            batch_size=_ROWS_AT_ONCE,
            batch_readahead=1,
            fragment_readahead=1,
        )
        yield from scanner.to_batches()

    def _dataset(self) -> Dataset:
        """Returns the newest version of the table; all of its log is read once only, later what is new."""
        with self._lock:
            table, known, files = self._last or (self._table(), None, None)
            table.update_incremental()
            if files is None or table.version() != known:
                files = table.to_pyarrow_dataset()
            self._last = (table, table.version(), files)
            return files

    def _attempt(self, what: str, action: Callable[[], _T]) -> _T:
        """Does what other writers may get in the way of, until it succeeds or it is hopeless."""
        from deltalake.exceptions import CommitFailedError, DeltaError

        for attempt in range(_ATTEMPTS):
            try:
                return action()
            except CommitFailedError as error:
                if attempt + 1 == _ATTEMPTS:
                    raise CodeError(
                        f"{self._location}: can't {what}: other writers keep changing the table: {error}"
                    ) from error
                # Grows to about a second; random, so that two that collided don't do so again.
                self._sleep(random.uniform(0, min(1.0, 0.02 * 2**attempt)))
            except (DeltaError, OSError) as error:
                with self._lock:
                    self._last = None
                raise CodeError(f"{self._location}: can't {what}: {error}") from error
        raise AssertionError("unreachable")


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("topology_id", pa.string(), nullable=False),
            pa.field("name", pa.string(), nullable=False),
            pa.field("chunk", pa.int32(), nullable=False),
            pa.field("bytes", pa.binary(), nullable=False),
            pa.field("sha256", pa.string(), nullable=False),
            pa.field("uploaded_at", pa.timestamp("us", tz="UTC"), nullable=False),
        ]
    )


def _rows(
    folder: Path, topology_id: str, artifacts: Sequence[ArtifactInfo], now: float, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    uploaded_at = datetime.datetime.fromtimestamp(now, datetime.timezone.utc)
    for info in artifacts:
        with (folder / info.name).open("rb") as file:
            for chunk in range(_chunks(info.size)):
                row = (topology_id, info.name, chunk, file.read(CHUNK_BYTES), info.sha256, uploaded_at)
                yield pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True))], schema=schema)


def _chunks(size: int) -> int:
    """Returns how many rows an artifact takes; an empty one has one, so that it is there."""
    return max(1, -(-size // CHUNK_BYTES))


def _put(file: IO[bytes], info: ArtifactInfo, chunk: int, content: bytes, topology_id: str) -> None:
    """Writes a row where it belongs; rows come in any order."""
    if not 0 <= chunk < _chunks(info.size) or chunk * CHUNK_BYTES + len(content) > info.size:
        raise ChecksumError(f"row {chunk} of {info.name} of {topology_id} is past its {info.size:,} bytes")
    file.seek(chunk * CHUNK_BYTES)
    file.write(content)


def _partition(topology_id: str) -> Expression:
    """Returns the filter for a topology's rows; files of others are not opened, as the partition is in their names."""
    import pyarrow.compute as pc

    return pc.field("topology_id") == check_topology_id(topology_id)
