"""Daemons on loopback ask for a token that only their user has, and this user's clients find it."""

from __future__ import annotations

import logging
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from answering import serving
from waiting import eventually

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.cluster.client.nimbus_client import NimbusClient
from storm_on_spark.cluster.driver.files import RunFolder
from storm_on_spark.cluster.errors import ClusterError
from storm_on_spark.cluster.http.auth import Authentication
from storm_on_spark.cluster.security.proofs import TokenAuth
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tokens import Tokens, read_tokens
from storm_on_spark.cluster.security.user_token import (
    TOKEN_PATH,
    auth_of_client,
    kept_secret,
    token_path,
    with_own_token,
)
from storm_on_spark.cluster.supervisor.process import launch
from storm_on_spark.xd.client import AdminClient

BIND, FILE = Config.NIMBUS_BIND_ADDRESS, Config.NIMBUS_AUTH_TOKEN_FILE
NOTHING = SecuritySettings.of({})
LOCAL = ["127.0.0.1:6627"]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def of_daemon(conf: dict[str, Any] | None = None, *, is_open: bool = False) -> dict[str, Any]:
    return with_own_token(conf or {}, "nimbus", is_open=is_open)


def test_a_daemon_makes_a_token_for_its_user_only_and_keeps_it() -> None:
    old = os.umask(0)
    try:
        file = Path(of_daemon()[FILE])
    finally:
        os.umask(old)
    assert file == token_path()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    made = read_tokens(file)
    assert of_daemon()[FILE] == str(file)
    assert read_tokens(file) == made
    assert os.listdir(file.parent) == [file.name]


def test_daemons_that_start_at_the_same_time_have_one_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        for number in range(20):
            files = pool.map(kept_secret, [tmp_path / str(number) / "token"] * 16)
            assert len({read_tokens(file) for file in files}) == 1


def test_its_users_clients_find_it_and_nobody_else_is_served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with serving(Authentication(Tokens.from_file(of_daemon()[FILE]))) as (url, done):
        port = httpx.URL(url).port
        assert httpx.get(f"{url}/anything").status_code == 401

        def ask() -> None:
            with NimbusClient(seeds=[f"localhost:{port}"]) as client, pytest.raises(ClusterError) as caught:
                client.cluster()  # no Nimbus is there, but a server that says "done"
            raise caught.value

        with pytest.raises(ClusterError, match="JSON"):
            ask()
        assert [path for _, path, _ in done] == ["/api/v1/cluster/summary"]
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "of-another-user"))
        with pytest.raises(ClusterError, match="say who you are"):
            ask()
        assert len(done) == 1


def test_a_driver_whose_own_state_is_elsewhere_finds_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = of_daemon()[FILE]
    supervisor_tells = {TOKEN_PATH: str(token_path()), "XDG_STATE_HOME": str(tmp_path / "artifacts")}
    folder = RunFolder(tmp_path_factory.mktemp("slot"))
    (folder.path / "driver.json").write_text("{}")
    output = tmp_path / "output"
    program = tmp_path_factory.mktemp("modules") / "tells_its_token.py"
    program.write_text(
        "from storm_on_spark.drpc.addresses import address_of\n"
        "print('token file:', address_of({}, '127.0.0.1', 3773).token_file, flush=True)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(program.parent))
    driver = launch(folder, output, supervisor_tells, "tells_its_token")
    try:
        eventually(lambda: f"token file: {file}" in output.read_text(), output.read_text)
    finally:
        driver.kill()
        eventually(lambda: driver.state() != "alive")


def test_no_request_to_another_host_is_signed_with_it() -> None:
    of_daemon()
    assert auth_of_client(NOTHING, ["nimbus-1:6627", "10.0.0.1:6627"]) is None
    # A Nimbus on this host may name a leader elsewhere.
    auth = auth_of_client(NOTHING, [*LOCAL, "nimbus-1:6627"])
    assert auth is not None
    for host in ("nimbus-1", "10.0.0.1", "localhost.example.com"):
        request = httpx.Request("GET", f"http://{host}:6627/api/v1/cluster/summary")
        assert [sent.headers.get("Authorization") for sent in auth.auth_flow(request)] == [None]
    flow = auth.auth_flow(httpx.Request("GET", "http://127.0.0.1:6627/api/v1/cluster/summary"))
    assert next(flow).url.path == "/api/v1/challenge"


def test_without_the_file_a_client_has_no_token_and_makes_none() -> None:
    assert auth_of_client(NOTHING, LOCAL) is None
    assert not token_path().exists()


def test_a_configured_token_comes_first(tmp_path: Path) -> None:
    of_daemon()
    conf = {FILE: str(kept_secret(tmp_path / "configured"))}
    assert of_daemon(conf) == conf
    auth = auth_of_client(SecuritySettings.of(conf), ["nimbus-1:6627"])
    assert isinstance(auth, TokenAuth)
    assert next(auth.auth_flow(httpx.Request("GET", "http://nimbus-1:6627/x"))).url.path == "/api/v1/challenge"


def test_what_other_hosts_can_reach_gets_no_token_that_they_dont_have() -> None:
    conf = {BIND: "0.0.0.0"}
    assert of_daemon(conf) == conf
    assert not token_path().exists()


def test_open_is_said_aloud_and_is_no_second_word_for_a_token(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    with caplog.at_level(logging.WARNING):
        assert of_daemon(is_open=True) == {}
    assert "Every user of this host can run code" in caplog.text
    with pytest.raises(ConfigError, match="leave out one of the two"):
        of_daemon({FILE: str(tmp_path / "token")}, is_open=True)


def clients() -> list[Any]:
    return [
        of_daemon,
        lambda: auth_of_client(NOTHING, LOCAL),
        lambda: NimbusClient(seeds=LOCAL),
        lambda: AdminClient("http://localhost:9393"),
    ]


@pytest.mark.parametrize("use", clients())
def test_a_file_that_others_may_have_read_is_refused(use: Any) -> None:
    of_daemon()
    token_path().chmod(0o640)
    with pytest.raises(SetupError, match=r"has mode 0640, so others may have read it; remove it"):
        use()


@pytest.mark.parametrize("use", clients())
def test_a_link_is_refused(use: Any, tmp_path: Path) -> None:
    other = kept_secret(tmp_path / "other")
    token_path().parent.mkdir()
    token_path().symlink_to(other)
    with pytest.raises(SetupError, match="is not a regular file; remove it"):
        use()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("use", clients())
def test_a_file_of_another_owner_is_refused(use: Any) -> None:
    of_daemon()
    os.chown(token_path(), 65534, -1)
    with pytest.raises(SetupError, match=r"belongs to user 65534, and not to you \(user 0\); remove it"):
        use()


def test_a_folder_of_others_is_no_place_for_it(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    token_path().parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SetupError, match=r"Set XDG_STATE_HOME, or nimbus\.auth\.token\.file"):
        of_daemon()
    assert not any((tmp_path / "elsewhere").iterdir())
