from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.cluster.errors import AuthenticationError, WireError
from storm_on_spark.cluster.pacemaker.access import Identity
from storm_on_spark.cluster.pacemaker.login.identities import topology_login
from storm_on_spark.cluster.pacemaker.login.server import Gate
from storm_on_spark.cluster.pacemaker.messages import Control, Message, control, control_of, sasl_token, token_of
from storm_on_spark.cluster.security import digest
from storm_on_spark.cluster.security.digest import Answering, Login, challenge, read_answer, verify
from storm_on_spark.cluster.security.tokens import Tokens

OLD, NEW, STRANGER = "0123456789abcdef", "fedcba9876543210", "aaaaaaaaaaaaaaaa"
NIMBUS = Login("pacemaker-client", digest.storm_secret("some username", "some password"))
REQUEST = control(Control.SASL_TOKEN_MESSAGE_REQUEST)


def gate(daemon: Login | None = NIMBUS, tokens: tuple[str, ...] = (NEW, OLD)) -> Gate:
    return Gate("DIGEST", daemon, Tokens(tokens), None, "10.0.0.1")


def log_in(server: Gate, login: Login) -> list[Message]:
    client = Answering(login)
    (asked,) = server.take(REQUEST)
    answers = server.take(sasl_token(client.answer(token_of(asked))))
    client.check(token_of(answers[0]))
    return answers


def test_a_login_has_the_steps_of_storms() -> None:
    server = gate()
    last, done = log_in(server, NIMBUS)
    assert token_of(last).startswith(b"rspauth=")
    assert control_of(done) is Control.SASL_COMPLETE_REQUEST
    assert server.who == Identity("daemon", "pacemaker-client")


@pytest.mark.parametrize("token", [OLD, NEW])
def test_a_topology_logs_in_by_any_of_the_clusters_tokens(token: str) -> None:
    server = gate()
    log_in(server, topology_login(token, "words-1"))
    assert server.who == Identity("topology", "words-1")


@pytest.mark.parametrize(
    "login",
    [
        pytest.param(Login(NIMBUS.name, "guessed"), id="wrong secret"),
        pytest.param(Login("topology:words-1", NIMBUS.secret), id="a topology with the secret of a daemon"),
        pytest.param(topology_login(STRANGER, "words-1"), id="a token that is gone"),
        pytest.param(Login("topology:words-1", topology_login(NEW, "words-2").secret), id="another topology's"),
        pytest.param(Login(NIMBUS.name, topology_login(NEW, NIMBUS.name).secret), id="a daemon with a topology's"),
        pytest.param(Login("topology:", topology_login(NEW, "words-1").secret), id="no topology"),
        pytest.param(Login("", ""), id="nothing"),
    ],
)
def test_a_wrong_login_is_refused(login: Login) -> None:
    server = gate()
    with pytest.raises(AuthenticationError) as refused:
        log_in(server, login)
    assert server.who.role == "anyone"
    assert login.secret not in str(refused.value) or not login.secret


def test_an_answer_counts_once() -> None:
    server, client = gate(), Answering(NIMBUS)
    answer = client.answer(token_of(server.take(REQUEST)[0]))
    server.take(sasl_token(answer))
    other = gate()
    other.take(REQUEST)
    with pytest.raises(AuthenticationError, match="another challenge"):
        other.take(sasl_token(answer))
    with pytest.raises(AuthenticationError, match="in use"):
        server.take(sasl_token(answer))
    with pytest.raises(AuthenticationError, match="in use"):
        server.take(REQUEST)


def test_a_login_is_first_or_never() -> None:
    server = gate()
    server.other()
    with pytest.raises(AuthenticationError, match="after the connection was in use"):
        server.take(REQUEST)
    server = gate()
    server.take(REQUEST)
    with pytest.raises(AuthenticationError, match="in the middle of a login"):
        server.other()
    with pytest.raises(WireError, match="not allowed at this point"):
        server.take(REQUEST)


def test_a_server_without_logins_says_so() -> None:
    for method in ("NONE", "KERBEROS"):
        with pytest.raises(AuthenticationError, match=f"this server's method is {method}"):
            Gate(method, None, None, None, "").take(REQUEST)  # type: ignore[arg-type]
    with pytest.raises(AuthenticationError, match="Kerberos, but this server's method is DIGEST"):
        gate().take(sasl_token(b"ticket"))


def test_a_client_finds_out_a_server_that_doesnt_know_the_secret() -> None:
    client = Answering(NIMBUS)
    nonce = digest.new_nonce()
    answer = read_answer(client.answer(challenge(nonce)), nonce)
    forged = verify(
        digest.Answer(**{**{f: getattr(answer, f) for f in answer.__struct_fields__}, "response": "x"}), "no"
    )
    assert forged is None
    for last in (b"rspauth=" + b"0" * 32, b"", b"rspauth"):
        with pytest.raises(AuthenticationError):
            client.check(last)


def test_the_answer_is_that_of_rfc_2831() -> None:
    """The RFC's own example has another realm and service, so the formula is written out here once more."""
    import hashlib

    def md5(text: bytes) -> bytes:
        return hashlib.md5(text).digest()

    client = Answering(Login("chris", "secret"), cnonce="OA6MHXh6VqTrRk")
    said = client.answer(b'realm="default",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8')
    name, password = base64.b64encode(b"chris"), base64.b64encode(b"secret")
    a1 = md5(name + b":default:" + password) + b":OA6MG9tEQGm2hh:OA6MHXh6VqTrRk"
    a2 = b"AUTHENTICATE:null/default"
    right = md5(md5(a1).hex().encode() + b":OA6MG9tEQGm2hh:00000001:OA6MHXh6VqTrRk:auth:" + md5(a2).hex().encode())
    assert f"response={right.hex()}".encode() in said


@given(st.binary(max_size=200))
def test_any_step_is_an_answer_or_one_error(step: bytes) -> None:
    server = gate()
    server.take(REQUEST)
    with pytest.raises(AuthenticationError):
        server.take(sasl_token(step))
    with pytest.raises(AuthenticationError):
        Answering(NIMBUS).answer(step)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((b"nc=00000001", b"nc=00000002"), "another challenge"),
        ((b"qop=auth", b"qop=auth-int"), "qop auth"),
        ((b'realm="default"', b'realm="x"'), "realm default"),
        ((b"qop=auth", b'qop=auth,authzid="root"'), "no authzid"),
        ((b"null/default", b"imap/default"), "the login is for 'imap/default'"),
        ((b"nc=00000001", b"nc=00000001,nc=00000001"), "nc twice"),
        ((b"maxbuf=65536", b"maxbuf"), "must be a list of name=value; character 187"),
        ((b"cnonce=", b"cnonze="), "lacks cnonce"),
    ],
)
def test_a_changed_answer_is_refused(change: tuple[bytes, bytes], said: str) -> None:
    server, client = gate(), Answering(NIMBUS)
    answer = client.answer(token_of(server.take(REQUEST)[0]))
    assert change[0] in answer
    with pytest.raises(AuthenticationError, match=said):
        server.take(sasl_token(answer.replace(*change)))
