from __future__ import annotations

import datetime
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from topology_code import TOPOLOGY, manifest_of, packed, same

from storm_on_spark.cluster.code.checksums import artifacts_of
from storm_on_spark.cluster.code.distributor import Metafile, Peers, make_distributor
from storm_on_spark.cluster.code.distributors.delta import CHUNK_BYTES, DeltaCodeDistributor
from storm_on_spark.cluster.code.packing.bundle import unpack
from storm_on_spark.cluster.errors import ChecksumError, CodeError


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("code"), 20 * CHUNK_BYTES + 17)


@pytest.fixture
def table(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def delta(table: str) -> Iterator[DeltaCodeDistributor]:
    made = make_distributor({"storm.codedistributor.class": "delta", "storm.codedistributor.location": table})
    assert isinstance(made, DeltaCodeDistributor)
    yield made
    made.close()


@pytest.mark.representative
def test_what_was_uploaded_is_what_another_host_downloads(
    delta: DeltaCodeDistributor, table: str, artifacts: Path, tmp_path: Path
) -> None:
    assert delta.get_replication_count(TOPOLOGY) == 0
    metafile = delta.upload(artifacts, TOPOLOGY)
    assert delta.get_replication_count(TOPOLOGY) == 1
    other = DeltaCodeDistributor(Peers(holders=lambda topology_id: ["a:1", "b:2"]))
    other.prepare({"storm.codedistributor.location": table})
    # As many as can hand it out; of what isn't there, nobody.
    assert (other.get_replication_count(TOPOLOGY), other.get_replication_count("a-1-1")) == (2, 0)
    assert other.holds(TOPOLOGY, metafile)
    other.fetch(TOPOLOGY, metafile)
    found = other.download(TOPOLOGY, metafile, tmp_path / "a")
    assert [path.name for path in found] == ["code.zip", "conf.json", "plan.json", "topology.json"]
    assert same(tmp_path / "a", artifacts)
    assert {path.stat().st_mode & 0o777 for path in found} == {0o600}
    assert other.download(TOPOLOGY, metafile, tmp_path / "a") == found
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_rows_are_what_the_documentation_says(table: str, artifacts: Path) -> None:
    delta = DeltaCodeDistributor(Peers(), now=lambda: 1_700_000_000.0)
    delta.prepare({"storm.codedistributor.location": table})
    delta.upload(artifacts, TOPOLOGY)
    rows = DeltaTable(table).to_pyarrow_table().to_pylist()
    assert list(rows[0]) == ["topology_id", "name", "chunk", "bytes", "sha256", "uploaded_at"]
    code = sorted((row["chunk"], len(row["bytes"])) for row in rows if row["name"] == "code.zip")
    assert [chunk for chunk, _ in code] == list(range(21))
    assert {size for _, size in code[:-1]} == {CHUNK_BYTES}
    assert {(row["name"], row["sha256"]) for row in rows} == {(i.name, i.sha256) for i in artifacts_of(artifacts)}
    assert {row["uploaded_at"] for row in rows} == {
        datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.timezone.utc)
    }
    assert delta.stored() == {TOPOLOGY: 1_700_000_000.0}


def test_uploading_again_replaces_in_one_transaction(
    delta: DeltaCodeDistributor, table: str, artifacts: Path, tmp_path: Path
) -> None:
    small = packed(tmp_path / "small", 10)
    first = delta.upload(artifacts, TOPOLOGY)
    second = delta.upload(small, TOPOLOGY)
    assert delta.holds(TOPOLOGY, second)
    assert not delta.holds(TOPOLOGY, first)
    with pytest.raises(CodeError, match="it lacks some code of word-count"):
        delta.fetch(TOPOLOGY, first)
    delta.download(TOPOLOGY, second, tmp_path / "b")
    assert same(tmp_path / "b", small)
    with pytest.raises(ChecksumError):
        delta.download(TOPOLOGY, first, tmp_path / "c")
    assert not (tmp_path / "c").exists()
    version = Metafile.of(first, TOPOLOGY).table_version
    assert version is not None
    assert DeltaTable(table, version=version).to_pyarrow_table().num_rows == 24, "earlier versions can be read"


def test_removed_code_is_gone_and_other_code_is_not(
    delta: DeltaCodeDistributor, artifacts: Path, tmp_path: Path
) -> None:
    delta.upload(artifacts, "a-1-1")
    metafile = delta.upload(artifacts, "b-2-2")
    delta.cleanup("a-1-1")
    delta.cleanup("a-1-1")
    assert not delta.holds("a-1-1", metafile)
    assert delta.get_replication_count("a-1-1") == 0
    with pytest.raises(CodeError, match="it has no code of a-1-1"):
        delta.download("a-1-1", metafile, tmp_path / "a")
    delta.download("b-2-2", metafile, tmp_path / "b")
    assert same(tmp_path / "b", artifacts)


def test_many_writers_at_once(table: str, tmp_path: Path) -> None:
    """Also the table itself is made by all of them at once."""
    small = packed(tmp_path, 1000)
    problems: list[BaseException] = []
    ready = threading.Barrier(6)

    def write(number: int) -> None:
        try:
            delta = DeltaCodeDistributor(Peers())
            ready.wait(30)
            delta.prepare({"storm.codedistributor.location": table})
            for round_ in range(3):
                metafile = delta.upload(small, f"t-{number}-{round_}")
                assert delta.holds(f"t-{number}-{round_}", metafile)
            delta.cleanup(f"t-{number}-0")
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    delta = DeltaCodeDistributor(Peers())
    delta.prepare({"storm.codedistributor.location": table})
    counts = {(n, r): delta.get_replication_count(f"t-{n}-{r}") for n in range(6) for r in range(3)}
    assert counts == {(n, r): int(r > 0) for n in range(6) for r in range(3)}


def test_changed_rows_are_noticed(delta: DeltaCodeDistributor, table: str, tmp_path: Path) -> None:
    small = packed(tmp_path, 1000)
    metafile = delta.upload(small, TOPOLOGY)
    good = DeltaTable(table).to_pyarrow_table()
    for change in (
        {"bytes": b"x"},
        {"chunk": 7},
        {"chunk": -1},
        {"bytes": bytes(2_000_000)},
    ):
        rows = good.to_pylist()
        next(row for row in rows if row["name"] == "code.zip").update(change)
        write_deltalake(table, pa.Table.from_pylist(rows, schema=good.schema), mode="overwrite")
        with pytest.raises(ChecksumError):
            delta.download(TOPOLOGY, metafile, tmp_path / "x")
        assert not (tmp_path / "x").exists()


def test_more_rows_do_no_harm(delta: DeltaCodeDistributor, table: str, tmp_path: Path) -> None:
    small = packed(tmp_path, 1000)
    metafile = delta.upload(small, TOPOLOGY)
    good = DeltaTable(table).to_pyarrow_table()
    rows = [{**good.to_pylist()[0], "name": "../../evil.py"}]
    write_deltalake(table, pa.Table.from_pylist(rows, schema=good.schema), mode="append")
    delta.download(TOPOLOGY, metafile, tmp_path / "x")
    assert same(tmp_path / "x", small)


def test_a_table_that_is_made_anew_is_read_anew(
    delta: DeltaCodeDistributor, table: str, artifacts: Path, tmp_path: Path
) -> None:
    metafile = delta.upload(artifacts, TOPOLOGY)
    assert delta.holds(TOPOLOGY, metafile)
    shutil.rmtree(table)
    with pytest.raises(CodeError, match="can't"):
        delta.download(TOPOLOGY, metafile, tmp_path / "x")
    delta.prepare({"storm.codedistributor.location": table})
    assert not delta.holds(TOPOLOGY, metafile)
    delta.upload(artifacts, TOPOLOGY)
    assert delta.holds(TOPOLOGY, metafile)


def test_places_that_are_no_table_for_code(tmp_path: Path) -> None:
    delta = DeltaCodeDistributor(Peers())
    with pytest.raises(
        CodeError, match=r"^storm\.codedistributor\.location must be a path or URI of a Delta table; it isn"
    ):
        delta.prepare({})
    write_deltalake(str(tmp_path / "other"), pa.table({"x": [1]}))
    with pytest.raises(CodeError, match="a Delta table with the columns x, not topology_id, name"):
        delta.prepare({"storm.codedistributor.location": str(tmp_path / "other")})
    (tmp_path / "file").touch()
    with pytest.raises(CodeError, match="can't make the table"):
        delta.prepare({"storm.codedistributor.location": str(tmp_path / "file")})


@pytest.mark.parametrize("topology_id", ["x' or '1'='1", "", "../x", "a b"])
def test_ids_that_are_none(delta: DeltaCodeDistributor, artifacts: Path, topology_id: str) -> None:
    for action in (delta.cleanup, delta.get_replication_count):
        with pytest.raises(CodeError, match="can't be the id of a topology"):
            action(topology_id)
    with pytest.raises(CodeError, match="can't be the id of a topology"):
        delta.upload(artifacts, topology_id)


def test_no_jvm_is_needed(delta: DeltaCodeDistributor, artifacts: Path, tmp_path: Path) -> None:
    metafile = delta.upload(artifacts, TOPOLOGY)
    delta.download(TOPOLOGY, metafile, tmp_path / "a")
    manifest = manifest_of(artifacts, delta.name, metafile)
    assert unpack(tmp_path / "a", manifest, tmp_path / "code").entry == "words"
    assert "delta.tables" not in sys.modules
