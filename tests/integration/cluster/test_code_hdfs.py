"""Code in Hadoop's file systems: the local one, and a real HDFS of one name node and two data nodes."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from topology_code import TOPOLOGY, manifest_of, packed, same

from storm_on_spark.cluster.code.bundle import unpack
from storm_on_spark.cluster.code.checksums import artifacts_of
from storm_on_spark.cluster.code.distributor import Metafile, Peers, make_distributor
from storm_on_spark.cluster.code.hdfs import HadoopCodeDistributor
from storm_on_spark.cluster.errors import ChecksumError, CodeError
from storm_on_spark.spark.jars import Jar, JarSet, fetch
from storm_on_spark.spark.java import find_java

HDFS = JarSet(
    name="HDFS test cluster",
    jars=tuple(
        Jar("org.apache.hadoop", f"hadoop-client-{part}", "3.4.2", sha256)
        for part, sha256 in {
            "api": "607c0299f4df33013bd0a0f37c8cf255c635bbaddd247b8fec68c210cc17d19f",
            "minicluster": "ae2406c544825b7734b8aad4f87eff60d9ec422284f0b16c2856032083b63c77",
            "runtime": "18d071c7f72f8a946677b398a57af9c7afa2dd41a81023c310f99373fec200b3",
        }.items()
    ),
    without="tests with a real HDFS are skipped",
)
_READY_SECS = 90.0


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
    with pytest.raises(CodeError, match=r"has not all code of word-count-1"):
        local.fetch(TOPOLOGY, first)
    with pytest.raises(CodeError, match=r"code\.zip is not there"):
        local.download(TOPOLOGY, first, tmp_path / "gone")
    local.cleanup(TOPOLOGY)
    local.cleanup(TOPOLOGY)
    assert not local.holds(TOPOLOGY, second)
    assert not place.exists()


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


def test_java_is_started_again_and_secrets_are_not_in_its_arguments(artifacts: Path, tmp_path: Path) -> None:
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
        assert distributor._gateway._gateway.gateway_parameters.auth_token not in arguments
        java.kill()
        java.wait(10)
        assert distributor.download(TOPOLOGY, metafile, tmp_path / "x")
        (other,) = set(psutil.Process().children()) - before
        assert other.pid != java.pid
    finally:
        distributor.close()
    assert set(psutil.Process().children()) == before


def test_java_that_says_nothing_useful(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("storm_on_spark.cluster.code.hadoop._OPTIONS", ("-XX:NoSuchOption",))
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
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, psutil.Process]]:
    """A name node and two data nodes in one Java process: its URI and the process."""
    java, jars = find_java(), fetch(HDFS)
    if java is None or jars is None:
        pytest.skip("the jars of HDFS can't be fetched here")
    folder = tmp_path_factory.mktemp("hdfs")
    details = folder / "details.json"
    command = [
        *(str(java.home / "bin" / "java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *("-cp", os.pathsep.join([*map(str, jars), *_logging_jars()])),
        *("org.apache.hadoop.test.MiniDFSClusterManager", "-format", "-datanodes", "2"),
        *("-nnport", "0", "-httpport", "0", "-D", f"hdfs.minidfs.basedir={folder}/data"),
        *("-writeDetails", str(details)),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
        try:
            yield f"hdfs://127.0.0.1:{_port(details, process, folder / 'log')}", psutil.Process(process.pid)
        finally:
            process.kill()
            process.wait()


def _logging_jars() -> Sequence[str]:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    jars = Path(spec.origin).parent / "jars"
    return [str(path) for pattern in ("slf4j-api-*", "jcl-over-slf4j-*") for path in jars.glob(pattern)]


def _port(details: Path, process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + _READY_SECS
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        if details.exists():
            try:
                return int(json.loads(details.read_text())["namenode_port"])
            except ValueError:
                pass
        time.sleep(0.05)


def _conf(uri: str) -> dict[str, str]:
    return {
        "storm.codedistributor.class": "hdfs",
        "storm.codedistributor.location": f"{uri}/storm/code",
        "spark.hadoop.dfs.replication": "2",
        "spark.hadoop.ipc.client.rpc-timeout.ms": "1000",
        "spark.hadoop.dfs.client.retry.max.attempts": "1",
    }


@pytest.fixture(scope="module")
def hdfs(hdfs_server: tuple[str, psutil.Process]) -> Iterator[HadoopCodeDistributor]:
    made = make_distributor(_conf(hdfs_server[0]))
    assert isinstance(made, HadoopCodeDistributor)
    yield made
    made.close()


def test_hdfs_keeps_code_and_another_nimbus_reads_it(
    hdfs: HadoopCodeDistributor, hdfs_server: tuple[str, psutil.Process], artifacts: Path, small: Path, tmp_path: Path
) -> None:
    first = hdfs.upload(artifacts, TOPOLOGY)
    assert hdfs.upload(artifacts, TOPOLOGY) == first
    assert json.loads(first)["location"].startswith(f"{hdfs_server[0]}/storm/code/{TOPOLOGY}/")
    assert hdfs.get_replication_count(TOPOLOGY) == 2
    other = make_distributor(_conf(hdfs_server[0]))
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
    hdfs: HadoopCodeDistributor, hdfs_server: tuple[str, psutil.Process], small: Path
) -> None:
    metafile = hdfs.upload(small, "hangs-2-1")
    hdfs_server[1].send_signal(signal.SIGSTOP)
    try:
        started = time.monotonic()
        with pytest.raises(CodeError, match=r"hdfs://127\.0\.0\.1"):
            hdfs.holds("hangs-2-1", metafile)
        assert time.monotonic() - started < 30
    finally:
        hdfs_server[1].send_signal(signal.SIGCONT)
    assert hdfs.holds("hangs-2-1", metafile)
