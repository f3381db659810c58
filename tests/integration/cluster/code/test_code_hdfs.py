"""Code in Hadoop's file systems: the local one, and a real HDFS of one name node and two data nodes."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from py4j.java_gateway import GatewayParameters
from topology_code import TOPOLOGY, manifest_of, packed, same

from storm_on_spark.cluster.code.checksums import artifacts_of
from storm_on_spark.cluster.code.distributor import Metafile, Peers, make_distributor
from storm_on_spark.cluster.code.distributors import hadoop
from storm_on_spark.cluster.code.distributors.hdfs import HadoopCodeDistributor
from storm_on_spark.cluster.code.packing.bundle import unpack
from storm_on_spark.cluster.errors import ChecksumError, CodeError
from storm_on_spark.testing.servers.hdfs import HdfsMissingError, HdfsServer


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("code"), 3_000_000)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("small"), 10)


# --- Hadoop's local file system -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="module")
def local(folder: Path) -> Iterator[HadoopCodeDistributor]:
    conf = {
        "storm.codedistributor.class": "org.apache.storm.hdfs.ha.codedistributor.HDFSCodeDistributor",
        "storm.codedistributor.location": f"file://{folder}/storm",
    }
    made = make_distributor(conf)
    assert isinstance(made, HadoopCodeDistributor)
    yield made
    made.close()


def test_a_file_system_keeps_code(
    local: HadoopCodeDistributor, folder: Path, artifacts: Path, small: Path, tmp_path: Path
) -> None:
    assert local.get_replication_count(TOPOLOGY) == 0
    first = local.upload(artifacts, TOPOLOGY)
    place = folder / "storm" / TOPOLOGY
    inside = [path.stat().st_ino for path in place.iterdir()]
    assert local.upload(artifacts, TOPOLOGY) == first
    assert [path.stat().st_ino for path in place.iterdir()] == inside, "what is there is not written again"
    assert {path.stat().st_mode & 0o777 for path in place.rglob("*.zip")} == {0o600}
    assert local.get_replication_count(TOPOLOGY) == 1
    assert local.holds(TOPOLOGY, first)

    into = tmp_path / "with blanks, ümlauts : and % signs"
    found = local.download(TOPOLOGY, first, into)
    assert [path.name for path in found] == ["code.zip", "conf.json", "plan.json", "topology.json"]
    assert same(into, artifacts)
    assert {path.stat().st_mode & 0o777 for path in found} == {0o600}
    assert unpack(into, manifest_of(artifacts, "hdfs", first), tmp_path / "code").entry == "words"

    second = local.upload(small, TOPOLOGY)
    assert len(list(place.iterdir())) == 1, "other code takes its place"
    assert local.holds(TOPOLOGY, second)
    assert not local.holds(TOPOLOGY, first)
    with pytest.raises(CodeError, match=r"lacks some code of word-count-1"):
        local.fetch(TOPOLOGY, first)
    with pytest.raises(CodeError, match=r"code\.zip is not there"):
        local.download(TOPOLOGY, first, tmp_path / "gone")
    local.cleanup(TOPOLOGY)
    local.cleanup(TOPOLOGY)
    assert not local.holds(TOPOLOGY, second)
    assert not place.exists()


def test_what_is_stored_is_told_from_what_else_is_there(
    local: HadoopCodeDistributor, folder: Path, small: Path
) -> None:
    for other in ("notes", "reports-1-1700000000/january", ".scratch"):
        (folder / "storm" / other).mkdir(parents=True)
    (folder / "storm" / "file-2-1700000000").touch()
    half = folder / "storm" / "half-3-1700000000" / f".{'0' * 32}"
    half.mkdir(parents=True)
    before = time.time()
    local.upload(small, TOPOLOGY)
    stored = local.stored()
    assert set(stored) == {TOPOLOGY, "half-3-1700000000"}
    assert abs(stored[TOPOLOGY] - before) < 60
    for topology_id in stored:
        local.cleanup(topology_id)
    assert local.stored() == {}


def test_damage_is_noticed(local: HadoopCodeDistributor, folder: Path, artifacts: Path, tmp_path: Path) -> None:
    metafile = local.upload(artifacts, "damaged-2-1")
    code = next((folder / "storm" / "damaged-2-1").rglob("code.zip"))
    (code.parent / ".code.zip.crc").unlink(missing_ok=True)
    with code.open("r+b") as file:
        file.write(b"!")
    with pytest.raises(ChecksumError, match=r"code\.zip: .* bytes with SHA-256"):
        local.download("damaged-2-1", metafile, tmp_path / "x")
    code.write_bytes(b"short")
    with pytest.raises(ChecksumError, match=r"code\.zip has not the [\d,]+ bytes that were uploaded"):
        local.download("damaged-2-1", metafile, tmp_path / "x")
    assert not local.holds("damaged-2-1", metafile)
    assert not (tmp_path / "x").exists()


def test_where_it_reads_is_not_for_the_metafile_to_say(
    local: HadoopCodeDistributor, artifacts: Path, tmp_path: Path
) -> None:
    local.upload(artifacts, "elsewhere-3-1")
    forged = Metafile(location="file:///etc", artifacts=artifacts_of(artifacts)).to_text()
    local.download("elsewhere-3-1", forged, tmp_path / "x")
    assert same(tmp_path / "x", artifacts)
    with pytest.raises(CodeError, match="can't be the id of a topology"):
        local.cleanup("..")


def test_java_is_started_again_and_secrets_are_not_in_its_arguments(
    artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: list[str] = []

    def noting(**parameters: Any) -> GatewayParameters:
        tokens.append(parameters["auth_token"])
        return GatewayParameters(**parameters)

    monkeypatch.setattr(hadoop, "GatewayParameters", noting)
    before = set(psutil.Process().children())
    conf = {"storm.codedistributor.location": f"file://{tmp_path}/storm", "spark.hadoop.my.secret": "s3cret"}
    distributor = HadoopCodeDistributor(Peers())
    distributor.prepare(conf)
    try:
        metafile = distributor.upload(artifacts, TOPOLOGY)
        (java,) = set(psutil.Process().children()) - before
        arguments = " ".join(java.cmdline())
        assert "py4j.GatewayServer" in arguments
        assert "s3cret" not in arguments
        (token,) = tokens
        assert len(token) > 20
        assert token not in arguments
        java.kill()
        java.wait(10)
        assert distributor.download(TOPOLOGY, metafile, tmp_path / "x")
        (other,) = set(psutil.Process().children()) - before
        assert other.pid != java.pid
    finally:
        distributor.close()
    assert set(psutil.Process().children()) == before


def test_java_that_says_nothing_useful(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("storm_on_spark.cluster.code.distributors.hadoop.OPTIONS", ("-XX:NoSuchOption",))
    distributor = HadoopCodeDistributor(Peers())
    with pytest.raises(CodeError, match=r"Java for Hadoop's file systems doesn't start: .*NoSuchOption"):
        distributor.prepare({"storm.codedistributor.location": f"file://{tmp_path}"})


def test_places_that_are_none(tmp_path: Path) -> None:
    distributor = HadoopCodeDistributor(Peers())
    with pytest.raises(CodeError, match="must be a folder, such as hdfs://host:port/path; it isn't set"):
        distributor.prepare({})
    with pytest.raises(CodeError, match='No FileSystem for scheme "nowhere"'):
        distributor.prepare({"storm.codedistributor.location": "nowhere://x/y"})


# --- HDFS -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    server = HdfsServer(tmp_path_factory.mktemp("hdfs"))
    try:
        server.start()
    except HdfsMissingError as error:
        pytest.skip(str(error))
    with contextlib.closing(server):
        yield server


def _conf(uri: str) -> dict[str, str]:
    return {
        "storm.codedistributor.class": "hdfs",
        "storm.codedistributor.location": f"{uri}/storm/code",
        "spark.hadoop.dfs.replication": "2",
        "spark.hadoop.ipc.client.rpc-timeout.ms": "1000",
        "spark.hadoop.dfs.client.retry.max.attempts": "1",
    }


@pytest.fixture(scope="module")
def hdfs(hdfs_server: HdfsServer) -> Iterator[HadoopCodeDistributor]:
    made = make_distributor(_conf(hdfs_server.uri))
    assert isinstance(made, HadoopCodeDistributor)
    yield made
    made.close()


def test_hdfs_keeps_code_and_another_nimbus_reads_it(
    hdfs: HadoopCodeDistributor, hdfs_server: HdfsServer, artifacts: Path, small: Path, tmp_path: Path
) -> None:
    first = hdfs.upload(artifacts, TOPOLOGY)
    assert hdfs.upload(artifacts, TOPOLOGY) == first
    assert json.loads(first)["location"].startswith(f"{hdfs_server.uri}/storm/code/{TOPOLOGY}/")
    assert hdfs.get_replication_count(TOPOLOGY) == 2
    other = make_distributor(_conf(hdfs_server.uri))
    try:
        assert other.holds(TOPOLOGY, first)
        other.fetch(TOPOLOGY, first)
        other.download(TOPOLOGY, first, tmp_path / "a")
        assert same(tmp_path / "a", artifacts)
        second = other.upload(small, TOPOLOGY)
    finally:
        other.close()
    assert hdfs.holds(TOPOLOGY, second)
    assert not hdfs.holds(TOPOLOGY, first)
    hdfs.cleanup(TOPOLOGY)
    assert hdfs.get_replication_count(TOPOLOGY) == 0


def test_a_name_node_that_hangs_is_an_error_soon(
    hdfs: HadoopCodeDistributor, hdfs_server: HdfsServer, small: Path
) -> None:
    metafile = hdfs.upload(small, "hangs-2-1")
    hdfs_server.pause()
    try:
        started = time.monotonic()
        with pytest.raises(CodeError, match=r"hdfs://127\.0\.0\.1"):
            hdfs.holds("hangs-2-1", metafile)
        assert time.monotonic() - started < 30
    finally:
        hdfs_server.resume()
    assert hdfs.holds("hangs-2-1", metafile)
