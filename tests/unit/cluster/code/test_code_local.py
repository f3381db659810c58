from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from codekit import TOPOLOGY, CodeServer, manifest_of, metafile_of, packed, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lengths import examples

from storm_on_spark.cluster.code import folders
from storm_on_spark.cluster.code.checksums import verify
from storm_on_spark.cluster.code.distributor import Peers
from storm_on_spark.cluster.code.distributors.local import LocalFileSystemCodeDistributor
from storm_on_spark.cluster.errors import ChecksumError, CodeError
from storm_on_spark.cluster.security.proofs import auth_of
from storm_on_spark.cluster.security.tokens import Tokens


@contextlib.contextmanager
def local(
    folder: Path, *holders: str, address: str | None = None, auth: httpx.Auth | None = None, **more: Any
) -> Iterator[LocalFileSystemCodeDistributor]:
    def who(topology_id: str) -> Sequence[str]:
        return holders

    more.setdefault("sleep", lambda seconds: None)
    more.setdefault("shuffle", lambda addresses: None)
    distributor = LocalFileSystemCodeDistributor(Peers(address, who, auth), **more)
    distributor.prepare({"storm.local.dir": str(folder)})
    try:
        yield distributor
    finally:
        distributor.close()


def test_what_was_uploaded_is_here_and_only_its_owner_can_see_it(tmp_path: Path, artifacts: Path) -> None:
    with local(tmp_path / "a") as nimbus:
        metafile = nimbus.upload(artifacts, TOPOLOGY)
        assert nimbus.holds(TOPOLOGY, metafile)
        assert list(nimbus.stored()) == [TOPOLOGY]
        folder = nimbus.folder_of(TOPOLOGY)
        assert same(folder, artifacts)
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
        assert {path.stat().st_mode & 0o777 for path in (folder, folder.parent)} == {0o700}
        assert nimbus.path_of(TOPOLOGY, "code.zip").read_bytes() == (artifacts / "code.zip").read_bytes()
        nimbus.cleanup(TOPOLOGY)
        nimbus.cleanup(TOPOLOGY)
        assert not nimbus.holds(TOPOLOGY, metafile)
        assert not nimbus.stored()


def test_a_store_that_can_not_be_written_says_what_to_mend(tmp_path: Path, artifacts: Path) -> None:
    with local(tmp_path / "a") as nimbus:
        root = nimbus.folder_of(TOPOLOGY).parent
        root.rmdir()
        root.write_text("no folder")
        with pytest.raises(
            CodeError, match=rf"code can't be written to {root}/{TOPOLOGY} on .*: File exists. {root} must be a folder "
        ):
            nimbus.upload(artifacts, TOPOLOGY)


def test_uploading_again_is_the_same_and_other_code_takes_its_place(tmp_path: Path, artifacts: Path) -> None:
    other = packed(tmp_path / "other", 10)
    with local(tmp_path / "a") as nimbus:
        first = nimbus.upload(artifacts, TOPOLOGY)
        inode = nimbus.folder_of(TOPOLOGY).stat().st_ino
        assert nimbus.upload(artifacts, TOPOLOGY) == first
        assert nimbus.folder_of(TOPOLOGY).stat().st_ino == inode
        second = nimbus.upload(other, TOPOLOGY)
        assert nimbus.holds(TOPOLOGY, second)
        assert not nimbus.holds(TOPOLOGY, first)
        assert [path.name for path in nimbus.folder_of(TOPOLOGY).parent.iterdir()] == [TOPOLOGY]


def test_one_nimbus_fetches_from_another(tmp_path: Path, artifacts: Path, server: CodeServer) -> None:
    server.serve(artifacts)
    with local(tmp_path / "b", server.address, auth=auth_of(Tokens(("secret-secret-secret",)))) as nimbus:
        nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
        assert nimbus.holds(TOPOLOGY, metafile_of(artifacts))
        assert same(nimbus.folder_of(TOPOLOGY), artifacts)
        assert "secret" not in str(server.headers) + repr(nimbus.peers)
        before = len(server.requests)
        found = nimbus.download(TOPOLOGY, metafile_of(artifacts), tmp_path / "copy")
        assert [path.name for path in found] == ["code.zip", "conf.json", "plan.json", "topology.json"]
        assert len(server.requests) == before, "it is here already"
        verify(manifest_of(artifacts), tmp_path / "copy")


def test_a_cut_download_goes_on_where_it_was(tmp_path: Path, artifacts: Path, server: CodeServer) -> None:
    server.serve(artifacts)
    server.cuts = [1_000_000, 500_000]
    with local(tmp_path / "b", server.address) as nimbus:
        nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
        assert same(nimbus.folder_of(TOPOLOGY), artifacts)
    ranges = [range_ for name, range_ in server.requests if name == "code.zip"]
    assert ranges == [None, "bytes=1000000-", "bytes=1500000-"]


def test_another_process_goes_on_too(tmp_path: Path, artifacts: Path, server: CodeServer) -> None:
    server.serve(artifacts)
    server.cuts = [1_000_000] + [0] * 10
    with local(tmp_path / "b", server.address) as nimbus, pytest.raises(CodeError, match=r"code\.zip of word-count-1"):
        nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
    assert not (tmp_path / "b" / "nimbus" / "code" / TOPOLOGY).exists()
    server.cuts.clear()
    server.requests.clear()
    with local(tmp_path / "b", server.address) as nimbus:
        nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
        assert server.requests[0] == ("code.zip", "bytes=1000000-")
        assert same(nimbus.folder_of(TOPOLOGY), artifacts)
        assert [path.name for path in nimbus.folder_of(TOPOLOGY).parent.iterdir()] == [TOPOLOGY]


def test_another_nimbus_goes_on_where_the_first_one_ended(tmp_path: Path, artifacts: Path, server: CodeServer) -> None:
    server.serve(artifacts)
    server.cuts = [2_000_000]
    with CodeServer(tmp_path / "second") as second:
        second.serve(artifacts)
        with local(tmp_path / "b", server.address, second.address) as nimbus:
            nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
            assert same(nimbus.folder_of(TOPOLOGY), artifacts)
        assert second.requests[0] == ("code.zip", "bytes=2000000-")


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(1, 600_000), max_size=6), ranges=st.booleans())
def test_wherever_it_is_cut_the_result_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], ranges: bool
) -> None:
    folder = tmp_path_factory.mktemp("cuts")
    artifacts = packed(folder / "packed", 500_000)
    with CodeServer(folder / "served") as server:
        server.serve(artifacts)
        server.cuts, server.ranges = list(cuts), ranges
        with local(folder / "b", server.address) as nimbus:
            try:
                nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
            except CodeError:
                # Without ranges a download that is cut again and again makes no progress.
                assert not ranges
                server.cuts.clear()
                nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
            assert same(nimbus.folder_of(TOPOLOGY), artifacts)


def test_wrong_bytes_are_never_used_and_a_right_copy_is_found(
    tmp_path: Path, artifacts: Path, server: CodeServer
) -> None:
    server.serve(artifacts)
    server.change = lambda content: content[:-1] + bytes([content[-1] ^ 1])
    with local(tmp_path / "b", server.address) as nimbus:
        with pytest.raises(ChecksumError, match=rf"what {server.address} sent does not have the SHA-256"):
            nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
        assert not nimbus.holds(TOPOLOGY, metafile_of(artifacts))
    with CodeServer(tmp_path / "second") as second:
        second.serve(artifacts)
        with local(tmp_path / "b", server.address, second.address) as nimbus:
            nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
            assert same(nimbus.folder_of(TOPOLOGY), artifacts)


def test_a_poisoned_part_does_not_discredit_who_gave_the_rest(
    tmp_path: Path, artifacts: Path, server: CodeServer
) -> None:
    server.serve(artifacts)
    with CodeServer(tmp_path / "poison") as poison:
        poison.serve(artifacts)
        poison.change = lambda content: bytes(len(content))
        poison.cuts = [500, 10, 10, 10, 10, 10, 10]
        with local(tmp_path / "b", poison.address, server.address) as nimbus:
            nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
            assert same(nimbus.folder_of(TOPOLOGY), artifacts)
    assert [range_ for name, range_ in server.requests if name == "code.zip"] == ["bytes=500-", None]


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (404, {}, b""),
        (500, {}, b"x"),
        (301, {"Location": "http://127.0.0.1:1/elsewhere"}, b""),
        (416, {}, b""),
        (206, {"Content-Range": "bytes 7-9/10"}, b"xxx"),
        (206, {}, b"xxx"),
        (200, {}, b"x" * 4_000_000),
        (200, {"Content-Length": "99999999999"}, b"x" * 4_000_000),
        (200, {"Content-Encoding": "gzip"}, b"x" * 100),
    ],
)
def test_answers_that_are_none(
    tmp_path: Path, artifacts: Path, server: CodeServer, status: int, headers: dict[str, str], body: bytes
) -> None:
    server.answer = lambda path, range_: (status, headers, body)
    with local(tmp_path / "b", server.address) as nimbus:
        with pytest.raises(CodeError, match=r"code\.zip of word-count-1-1700000000"):
            nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
        parts = tmp_path / "b" / "nimbus" / "code" / f".{TOPOLOGY}.parts" / "code.zip"
        assert parts.stat().st_size <= 3_100_000, "no more is kept than the artifact has"
        server.answer = None
        server.serve(artifacts)
        nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
        assert same(nimbus.folder_of(TOPOLOGY), artifacts)


def test_nobody_has_it(tmp_path: Path, artifacts: Path) -> None:
    slept: list[float] = []
    with local(tmp_path / "b", sleep=slept.append) as nimbus:
        with pytest.raises(CodeError, match="can't be fetched: no live Nimbus has it"):
            nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
        assert slept == pytest.approx([0.2, 0.4, 0.6])
    with (
        local(tmp_path / "b", "127.0.0.1:1") as nimbus,
        pytest.raises(CodeError, match=r"can't be fetched: 127\.0\.0\.1:1: .*refused"),
    ):
        nimbus.fetch(TOPOLOGY, metafile_of(artifacts))


def test_it_never_asks_itself_nor_an_address_that_is_none(tmp_path: Path, artifacts: Path, server: CodeServer) -> None:
    with local(tmp_path / "b", server.address, address=server.address) as nimbus:
        with pytest.raises(CodeError, match="no live Nimbus has it"):
            nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
        assert server.requests == []
    with (
        local(tmp_path / "b", "localhost:80/../../x?") as nimbus,
        pytest.raises(CodeError, match="expected an address host:port"),
    ):
        nimbus.fetch(TOPOLOGY, metafile_of(artifacts))


def test_replicas_are_what_is_registered(tmp_path: Path) -> None:
    with local(tmp_path / "a", "a:1", "b:1", "b:1") as nimbus:
        assert nimbus.get_replication_count(TOPOLOGY) == 2


def test_damage_is_noticed_though_it_was_right_before(tmp_path: Path, artifacts: Path, server: CodeServer) -> None:
    server.serve(artifacts)
    with local(tmp_path / "a", server.address) as nimbus:
        metafile = nimbus.upload(artifacts, TOPOLOGY)
        assert nimbus.holds(TOPOLOGY, metafile)
        code = nimbus.folder_of(TOPOLOGY) / "code.zip"
        before = code.stat()
        with code.open("r+b") as file:
            file.seek(100)
            file.write(b"!")
        os.utime(code, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert not nimbus.holds(TOPOLOGY, metafile)
        nimbus.fetch(TOPOLOGY, metafile)
        assert nimbus.holds(TOPOLOGY, metafile)
        code.unlink()
        code.symlink_to(artifacts / "code.zip")
        assert not nimbus.holds(TOPOLOGY, metafile)
        with pytest.raises(CodeError, match=r"there is no artifact 'code\.zip'"):
            nimbus.path_of(TOPOLOGY, "code.zip")


@pytest.mark.parametrize("name", ["../code.zip", "passwd", "", ".", "code.zip/../conf.json", "CODE.ZIP"])
def test_only_artifacts_are_handed_out(tmp_path: Path, artifacts: Path, name: str) -> None:
    with local(tmp_path / "a") as nimbus:
        nimbus.upload(artifacts, TOPOLOGY)
        with pytest.raises(CodeError, match="there is no artifact"):
            nimbus.path_of(TOPOLOGY, name)


@pytest.mark.parametrize("topology_id", ["", ".", "..", "../x", "a/b", ".x", "a\0b", "ä", "x" * 201, "a\n", "-\n"])
def test_ids_that_are_no_names_of_folders(tmp_path: Path, artifacts: Path, topology_id: str) -> None:
    with local(tmp_path / "a") as nimbus:
        for action in (nimbus.folder_of, nimbus.cleanup, nimbus.get_replication_count):
            with pytest.raises(CodeError, match="can't be the id of a topology"):
                action(topology_id)
        with pytest.raises(CodeError, match="can't be the id of a topology"):
            nimbus.upload(artifacts, topology_id)


def test_many_at_once_fetch_it_once(tmp_path: Path, artifacts: Path, server: CodeServer) -> None:
    server.serve(artifacts)
    problems: list[BaseException] = []
    with local(tmp_path / "b", server.address) as nimbus:

        def fetch() -> None:
            try:
                nimbus.fetch(TOPOLOGY, metafile_of(artifacts))
            except BaseException as error:
                problems.append(error)

        threads = [threading.Thread(target=fetch) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        assert nimbus.holds(TOPOLOGY, metafile_of(artifacts))
    assert len(server.requests) == 4


def test_what_a_killed_process_left_goes_at_the_next_start(tmp_path: Path, artifacts: Path) -> None:
    with local(tmp_path / "a") as nimbus:
        root = nimbus.folder_of(TOPOLOGY).parent
    for name in (f".{TOPOLOGY}.{'0' * 32}", f".{TOPOLOGY}.{'0' * 32}.old", f".{TOPOLOGY}.parts"):
        (root / name).mkdir()
    with local(tmp_path / "a"):
        assert len(list(root.iterdir())) == 3, "a supervisor leaves alone what is a Nimbus'"
    with local(tmp_path / "a", address="me:1"):
        assert [path.name for path in root.iterdir()] == [f".{TOPOLOGY}.parts"]


def test_the_code_can_be_downloaded_from_the_own_store_without_others(tmp_path: Path, artifacts: Path) -> None:
    with local(tmp_path / "a") as nimbus:
        metafile = nimbus.upload(artifacts, TOPOLOGY)
        into = tmp_path / "copy"
        into.mkdir()
        (into / "stranger").touch()
        nimbus.download(TOPOLOGY, metafile, into)
        assert same(into, artifacts), "what was there is replaced"


@pytest.mark.parametrize("metafile", ["", "{}", "[]", '{"format":1,"location":"x","artifacts":[]}', "\x00", "1" * 9])
def test_metafiles_that_are_none(tmp_path: Path, metafile: str) -> None:
    with local(tmp_path / "a") as nimbus:
        assert not nimbus.holds(TOPOLOGY, metafile)
        with pytest.raises(CodeError, match="metafile of word-count-1-1700000000"):
            nimbus.download(TOPOLOGY, metafile, tmp_path / "x")


def test_closing_ends_a_fetch_that_is_under_way(tmp_path: Path, artifacts: Path, server: CodeServer) -> None:
    server.serve(artifacts)
    asked = threading.Event()

    def never(path: str, range_: str | None) -> tuple[int, dict[str, str], bytes]:
        asked.set()
        return 503, {}, b""

    server.answer = never
    distributor = LocalFileSystemCodeDistributor(Peers(None, lambda topology_id: [server.address] if asked else []))
    distributor.prepare({"storm.local.dir": str(tmp_path / "b")})
    problems: list[BaseException] = []

    def fetch() -> None:
        try:
            distributor.fetch(TOPOLOGY, metafile_of(artifacts))
        except BaseException as error:
            problems.append(error)

    thread = threading.Thread(target=fetch)
    thread.start()
    assert asked.wait(10)
    distributor.close()
    thread.join(10)
    assert not thread.is_alive()
    assert [type(problem) for problem in problems] == [CodeError]
    with pytest.raises(CodeError, match="the distributor was closed"):
        distributor.fetch(TOPOLOGY, metafile_of(artifacts))


def test_a_folder_whose_holder_removed_it_is_locked_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, flock, ended = tmp_path / "parts", fcntl.flock, threading.Event()
    entered, end = threading.Event(), threading.Event()

    def another() -> None:
        with folders.locked(parts):
            entered.set()
            end.wait(30)
            ended.set()

    def late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        shutil.rmtree(parts)
        threading.Thread(target=another).start()
        assert entered.wait(30)
        threading.Timer(0.2, end.set).start()
        flock(descriptor, how)

    folders.make_private(parts)
    monkeypatch.setattr(fcntl, "flock", late)
    with folders.locked(parts):
        assert ended.is_set()
        assert parts.is_dir()
