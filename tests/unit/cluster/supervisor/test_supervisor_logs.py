"""The logs of drivers, read in parts, by whoever may and of nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_on_spark.api.errors import NotAliveError, SetupError
from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.errors import AuthenticationError, RecordError, UnavailableError
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.supervisor.logs import LogServer, read_part
from storm_on_spark.cluster.supervisor.old_logs import sweep
from storm_on_spark.cluster.supervisor.settings import LogSettings

FILE = "words-1-1000/6700/worker.log"
TOKEN = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    log = tmp_path / "logs" / FILE
    log.parent.mkdir(parents=True)
    log.write_bytes(b"0123456789")
    (tmp_path / "secret").write_text("hush")
    (log.parents[2] / "words-1-1000" / "6701").mkdir()
    (log.parents[2] / "words-1-1000" / "6701" / "worker.log").symlink_to(tmp_path / "secret")
    return log.parents[2]


@pytest.mark.parametrize(
    ("start", "length", "data", "first"),
    [(0, 4, b"0123", 0), (8, 100, b"89", 8), (-3, 2, b"78", 7), (-100, 100, b"0123456789", 0), (11, 5, b"", 10)],
)
def test_a_part_is_what_was_asked_for(folder: Path, start: int, length: int, data: bytes, first: int) -> None:
    assert read_part(folder, FILE, start, length) == (data, first, 10)


def test_samples_are_beside_the_log(folder: Path) -> None:
    (folder / FILE).with_name("events.log").write_bytes(b"[1]")
    assert read_part(folder, FILE.replace("worker", "events"), 0, 10) == (b"[1]", 0, 3)


@pytest.mark.parametrize(
    "file", ["", "../secret", "/etc/passwd", "words-1-1000/6700/../../../secret", "words-1-1000/6700/driver.json"]
)
def test_only_logs_have_names(folder: Path, file: str) -> None:
    with pytest.raises(RecordError, match="is not a driver's log"):
        read_part(folder, file, 0, 10)


@pytest.mark.parametrize("file", ["../6700/worker.log", "words-1-1000/6701/worker.log", "gone-1-1/6700/worker.log"])
def test_what_is_no_file_in_the_folder_is_not_there(folder: Path, file: str) -> None:
    with pytest.raises(NotAliveError, match="there is no log"):
        read_part(folder, file, 0, 10)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text(TOKEN)
    return file


def log_server(conf: dict[str, object], folder: Path) -> LogServer:
    return LogServer(LogSettings.of(conf), Authentication.of(SecuritySettings.of(conf)), folder, "here")


@pytest.fixture
def server(folder: Path, token_file: Path) -> Iterator[LogServer]:
    with log_server({"nimbus.auth.token.file": str(token_file)}, folder) as server:
        yield server


def link(server: LogServer, file: str = FILE) -> str:
    return f"http://{server.address}/api/v1/log?file={file}"


def test_the_client_reads_a_log(server: LogServer) -> None:
    with NimbusClient(token=TOKEN) as client:
        part = client.log(link(server), -4)
        assert (part.data, part.start, part.size) == (b"6789", 6, 10)
        assert client.log(link(server), 2, 3).data == b"234"
        with pytest.raises(NotAliveError):
            client.log(link(server, "gone-1-1/6700/worker.log"), 0)


def test_nobody_else_does(server: LogServer) -> None:
    with NimbusClient(token="f" * 16) as client, pytest.raises(AuthenticationError):
        client.log(link(server), 0)


def test_a_second_supervisor_takes_another_port(server: LogServer, folder: Path) -> None:
    port = int(server.address.rpartition(":")[2])
    with log_server({"supervisor.logs.port": port}, folder) as other:
        assert other.address != server.address
        assert other.address.startswith("localhost:")


def test_a_public_address_needs_a_token(folder: Path) -> None:
    with pytest.raises(SetupError, match=r"supervisor\.logs\.bind\.address '0\.0\.0\.0' can be reached"):
        log_server({"supervisor.logs.bind.address": "0.0.0.0"}, folder)


def test_the_logs_of_a_topology_that_is_no_more_are_found(
    server: LogServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate(("words-2-2000", "others-3-3000")):
        log = folder / name / "6701" / "worker.log"
        log.parent.mkdir(parents=True)
        log.write_text(name)
        os.utime(log, (1e9, 1e9 + number))
    os.utime(folder / FILE, (2e9, 2e9))
    (folder / "spares").mkdir()
    (folder / "spares" / "worker.log").touch()
    there = f"http://{server.address}/api/v1/logs"
    gone = "http://127.0.0.1:1/api/v1/logs"
    rows = [{"workerLogsLink": link} for link in (there, gone, "")]
    with NimbusClient(token=TOKEN) as client:
        monkeypatch.setattr(client, "supervisors", lambda: rows)
        kept = client.kept_logs("words")
        assert [(each.topology_id, each.port, each.modified) for each in kept] == [
            ("words-1-1000", 6700, 2e9),
            ("words-2-2000", 6701, 1e9),
        ], "links out of the folder are none of ours"
        assert [client.log(each.link, 0).data for each in kept] == [b"0123456789", b"words-2-2000"]
        assert [each.topology_id for each in client.kept_logs("others-3-3000")] == ["others-3-3000"]
        assert client.kept_logs("nothing") == client.kept_logs("../words-1-1000") == []
        monkeypatch.setattr(client, "supervisors", lambda: rows[1:])
        with pytest.raises(UnavailableError, match="no supervisor answers"):
            client.kept_logs("words")


def test_logs_are_removed_when_they_were_kept_long_enough(folder: Path) -> None:
    for name, modified in (("old-2-2", 1000.0), ("old-3-3", 1000.0), ("new-4-4", 1900.0)):
        log = folder / name / "6700" / "worker.log"
        log.parent.mkdir(parents=True)
        log.touch()
        os.utime(log, (modified, modified))
    os.utime(folder / FILE, (0.0, 0.0))
    (folder / "spares").mkdir()
    sweep(folder, {"words-1-1000", "old-3-3"}, 2000.0, 500.0)
    assert sorted(path.name for path in folder.iterdir()) == ["new-4-4", "old-3-3", "spares", "words-1-1000"]


def test_a_supervisor_that_is_gone_is_named(folder: Path) -> None:
    with NimbusClient() as client, pytest.raises(UnavailableError, match=r"the supervisor at 127\.0\.0\.1:1 doesn't"):
        client.log("http://127.0.0.1:1/api/v1/log?file=x", 0)
