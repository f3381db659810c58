from __future__ import annotations

import hashlib
import os
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.http.auth import REALM, Authentication, StaleNonceError, read_users
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tokens import read_tokens

TOKEN = "0123456789abcdef-TOKEN"
HASH = hashlib.sha256(f"ann:{REALM}:pass word".encode()).hexdigest()


def secret(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return path


def digest_header(authentication: Authentication, user: str, password: str, target: str, stale: bool = False) -> str:
    """Returns what a client of others' making sends."""
    (challenge, *_) = authentication.challenges(stale)
    request = httpx.Request("GET", f"http://localhost{target}")
    flow = httpx.DigestAuth(user, password).auth_flow(request)
    next(flow)
    asked = httpx.Response(401, headers={"WWW-Authenticate": challenge}, request=request)
    return str(flow.send(asked).headers["Authorization"])


def test_without_authentication_only_this_host_is_served() -> None:
    nobody = Authentication()
    assert not nobody.required
    for host in ("localhost:6627", "127.0.0.1", "[::1]:6627"):
        assert nobody.check({"host": host}, "GET", "/") == ""
        assert nobody.check({"host": host, "origin": f"http://{host}"}, "POST", "/") == ""
    for host in ("evil.example:6627", "", "localhost.evil.example", "10.0.0.1"):
        with pytest.raises(AuthenticationError, match="without authentication only this host is served"):
            nobody.check({"host": host}, "GET", "/")
    for origin in ("http://evil.example", "http://localhost:1", "null"):
        with pytest.raises(AuthenticationError, match="a request must come from this server's own pages"):
            nobody.check({"host": "localhost:6627", "origin": origin}, "POST", "/")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "nimbus-1", ""])
def test_a_public_address_needs_authentication(host: str) -> None:
    with pytest.raises(SetupError, match=r"can be reached from other hosts: set nimbus.auth.token.file, or bind to"):
        Authentication().check_bind(host)
    Authentication(TOKEN).check_bind(host)
    Authentication().check_bind("127.0.0.1")


def test_the_token() -> None:
    authentication = Authentication(TOKEN)
    assert authentication.check({"authorization": f"Bearer {TOKEN}"}, "POST", "/x") == "token"
    assert authentication.check({"authorization": f"bearer  {TOKEN}"}, "POST", "/x") == "token"
    wrong = ["", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, 'Digest username="ann"', "Bearer \xff"]
    for value in wrong:
        with pytest.raises(AuthenticationError) as caught:
            authentication.check({"authorization": value, "host": "localhost"}, "GET", "/")
        assert TOKEN not in str(caught.value)
    proof, bearer = authentication.challenges()
    assert proof.startswith('Storm-HMAC challenge="')
    assert bearer == f'Bearer realm="{REALM}"'


@given(st.text(max_size=60))
def test_no_header_gets_through_by_chance(text: str) -> None:
    authentication = Authentication(TOKEN, {"ann": HASH})
    for value in (text, f"Bearer {text}", f"Digest {text}"):
        if text.strip() != TOKEN:
            with pytest.raises(AuthenticationError):
                authentication.check({"authorization": value}, "GET", "/")


def test_a_user_logs_in_by_digest() -> None:
    authentication = Authentication(TOKEN, {"ann": HASH})
    header = digest_header(authentication, "ann", "pass word", "/api/v1/topology/summary?x=1")
    check = authentication.check
    assert check({"authorization": header}, "GET", "/api/v1/topology/summary?x=1") == "ann"
    with pytest.raises(StaleNonceError, match="was used before"):
        check({"authorization": header}, "GET", "/api/v1/topology/summary?x=1")
    header = digest_header(authentication, "ann", "pass word", "/a")
    for method, target in (("POST", "/a"), ("GET", "/b")):
        with pytest.raises(AuthenticationError, match=r"^user or password is wrong$"):
            check({"authorization": header}, method, target)
    for user, password in (("ann", "wrong"), ("bob", "pass word"), ("", "")):
        header = digest_header(authentication, user, password, "/a")
        with pytest.raises(AuthenticationError, match=r"^user or password is wrong$"):
            check({"authorization": header}, "GET", "/a")


def test_nonces_get_old_and_are_not_other_servers() -> None:
    time = [1000.0]
    authentication = Authentication(TOKEN, {"ann": HASH}, now=lambda: time[0])
    header = digest_header(authentication, "ann", "pass word", "/a")
    time[0] += 301
    with pytest.raises(StaleNonceError):
        authentication.check({"authorization": header}, "GET", "/a")
    assert "stale=true" in authentication.challenges(stale=True)[0]
    header = digest_header(Authentication(TOKEN, {"ann": HASH}), "ann", "pass word", "/a")
    with pytest.raises(StaleNonceError):
        authentication.check({"authorization": header}, "GET", "/a")


def test_token_files(tmp_path: Path) -> None:
    assert read_tokens(secret(tmp_path / "token", f"{TOKEN}\n")) == (TOKEN,)
    for mode in (0o640, 0o604, 0o666):
        with pytest.raises(SetupError, match="can be read by others than its owner; chmod 600"):
            read_tokens(secret(tmp_path / "open", TOKEN, mode))
    for text in ("", "short", "with blank in it and long", "ümläutümläutümläut"):
        with pytest.raises(SetupError, match="holds no token: at least 16 letters") as caught:
            read_tokens(secret(tmp_path / "wrong", text))
        assert not text or text not in str(caught.value)
    with pytest.raises(SetupError, match=r"token file .*none can't be read: No such file"):
        read_tokens(tmp_path / "none")


def test_files_of_users(tmp_path: Path) -> None:
    assert read_users(secret(tmp_path / "users", f"# us\n\nann:{REALM}:{HASH}\n")) == {"ann": HASH}
    for line in ("ann", f"ann:other:{HASH}", f"ann:{REALM}:{HASH[1:]}", f":{REALM}:{HASH}"):
        with pytest.raises(SetupError, match=r"wrong, line 2: expected user:storm-on-spark:<SHA-256"):
            read_users(secret(tmp_path / "wrong", f"# us\n{line}"))


def test_from_a_configuration(tmp_path: Path) -> None:
    token, users = secret(tmp_path / "t", TOKEN), secret(tmp_path / "u", f"ann:{REALM}:{HASH}")
    assert not Authentication.of(SecuritySettings.of({})).required
    assert Authentication.of(SecuritySettings.of({"nimbus.auth.token.file": os.fspath(token)})).required
    both = {"nimbus.auth.token.file": os.fspath(token), "nimbus.auth.digest.file": os.fspath(users)}
    kinds = [challenge.split()[0] for challenge in Authentication.of(SecuritySettings.of(both)).challenges()]
    assert kinds == ["Digest", "Storm-HMAC", "Bearer"]
    with pytest.raises(SetupError, match=r"needs nimbus.auth.token.file too"):
        Authentication.of(SecuritySettings.of({"nimbus.auth.digest.file": os.fspath(users)}))
    assert TOKEN not in repr(Authentication(TOKEN))
