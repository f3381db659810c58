"""`drpc.authorizer`: who may call and who may answer a function, over Thrift and HTTP."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.drpc.rights import NOOP, SIMPLE, FunctionRights, read_acl
from storm_on_spark.cluster.drpc.server import DRPCServer, Ports
from storm_on_spark.cluster.errors import AuthenticationError, ForbiddenError
from storm_on_spark.cluster.http.auth import REALM
from storm_on_spark.cluster.security.digest import Login
from storm_on_spark.drpc.connection import Address, DRPCConnection

ANY = Ports(0, 0, 0)
ACL = """
drpc.authorizer.acl:
  "f":
    client.users: ["ann"]
    invocation.user: "storm"
  "nobodys": {}
"""


def written(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def may(check: Any, *given: object) -> bool:
    try:
        check(*given)
    except ForbiddenError:
        return False
    return True


@pytest.mark.parametrize("strict", [False, True])
def test_rules_are_those_of_storms_authorizer(tmp_path: Path, strict: bool) -> None:
    rights = FunctionRights(written(tmp_path / "acl.yaml", ACL), strict=strict)
    users = ("ann", "storm", "eve", None)
    assert [may(rights.check_client, user, "f") for user in users] == [True, False, False, False]
    assert [may(rights.check_topology, user, "f") for user in users] == [False, True, False, False]
    # An entry without users is nobody's, also for whoever has no name.
    for check in (rights.check_client, rights.check_topology):
        assert [may(check, user, "nobodys") for user in users] == [False] * 4
        assert [may(check, user, "other") for user in users] == [not strict] * 4


def test_a_list_that_changes_counts_at_once_and_a_broken_one_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "acl.yaml"
    rights = FunctionRights(written(path, ACL), strict=False)

    def replace(text: str) -> None:
        written(tmp_path / "new", text)
        (tmp_path / "new").replace(path)

    replace(ACL.replace('["ann"]', '["ann", "eve"]'))
    assert may(rights.check_client, "eve", "f")
    replace("drpc.authorizer.acl: [")
    assert not any(may(rights.check_client, user, name) for user in ("ann", "eve") for name in ("f", "other"))
    path.unlink()
    assert not may(rights.check_client, "ann", "f")
    replace(ACL)
    assert [may(rights.check_client, user, "f") for user in ("ann", "eve")] == [True, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("drpc.authorizer.acl: 3", "has to be a mapping of functions"),
        ("[]", "has to be a mapping of functions"),
        ("drpc.authorizer.acl: {f: 3}", "entry of function 'f' has to have client.users"),
        ("drpc.authorizer.acl: {f: {client.users: ann}}", "entry of function 'f'"),
        ("drpc.authorizer.acl: {f: {client.users: [1]}}", "entry of function 'f'"),
        ("drpc.authorizer.acl: {f: {invocation.user: [a]}}", "entry of function 'f'"),
        ("drpc.authorizer.acl: {f: {clients: [a]}}", "entry of function 'f'"),
        ("a: [", "is not YAML"),
        ("a: !!python/object:os.system {}", "is not YAML"),
        ("# " + "x" * (1 << 20), "has more than 1,048,576 bytes"),
    ],
)
def test_a_list_of_another_form_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SetupError, match=said):
        read_acl(written(tmp_path / "acl.yaml", text))


def test_a_list_that_others_may_write_or_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="chmod go-w"):
        read_acl(written(tmp_path / "acl.yaml", ACL, 0o620))
    with pytest.raises(SetupError, match="No such file"):
        read_acl(tmp_path / "other.yaml")


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({"drpc.authorizer": "org.example.Own"}, "'org.example.Own' is not supported"),
        ({"drpc.authorizer": SIMPLE}, "needs nimbus.auth.token.file"),
        ({"drpc.authorizer": SIMPLE, "nimbus.auth.token.file": "token"}, "needs drpc.authorizer.acl.filename"),
    ],
)
def test_what_an_authorizer_lacks_is_told(tmp_path: Path, conf: dict[str, str], said: str) -> None:
    token = written(tmp_path / "token", "0123456789abcdef0123456789abcdef")
    given = {key: token if value == "token" else value for key, value in conf.items()}
    with pytest.raises(SetupError, match=said):
        DRPCServer(given, ANY)


def test_the_authorizer_that_does_nothing_does_nothing() -> None:
    with DRPCServer({"drpc.authorizer": NOOP}, ANY):
        pass


class UserConnection(DRPCConnection):
    """Logs in as a user of the JAAS file, as only Storm's own clients do."""

    def __init__(self, address: Address, service: str, name: str, secret: str | None = None) -> None:
        super().__init__(address, service, 20.0)
        self._login = Login(name, secret or f"{name}s secret")

    def _log_in(self, connected: socket.socket, login: Login) -> None:
        super()._log_in(connected, self._login)


@contextmanager
def logged_in(address: Address, service: str, name: str) -> Iterator[DRPCConnection]:
    connection = UserConnection(address, service, name)
    try:
        yield connection
    finally:
        connection.close()


def test_users_do_what_the_list_lets_them_and_the_token_does_everything(tmp_path: Path) -> None:
    module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
    users = " ".join(f'user_{name}="{name}s secret"' for name in ("ann", "storm", "eve"))
    digest = "".join(
        f"{name}:{REALM}:{hashlib.sha256(f'{name}:{REALM}:{name}s secret'.encode()).hexdigest()}\n"
        for name in ("ann", "eve")
    )
    conf = {
        "drpc.authorizer": SIMPLE,
        "drpc.authorizer.acl.filename": written(tmp_path / "acl.yaml", ACL),
        "drpc.authorizer.acl.strict": True,
        "drpc.thrift.transport": "org.apache.storm.security.auth.digest.DigestSaslTransportPlugin",
        "java.security.auth.login.config": written(tmp_path / "jaas", f"StormServer {{ {module} {users}; }};\n"),
        "nimbus.auth.token.file": written(tmp_path / "token", "0123456789abcdef0123456789abcdef"),
        "nimbus.auth.digest.file": written(tmp_path / "digest", digest),
    }
    with DRPCServer(conf, ANY) as server:

        def answer_one(name: str) -> None:
            with logged_in(server.invocations, "DistributedRPCInvocations", name) as topology:
                (request,) = topology.call("fetchRequests", "f", 1, 20_000)
                topology.call("result", request.request_id, request.func_args + "!")

        def refused(address: Address, service: str, name: str, *call: object) -> str:
            with logged_in(address, service, name) as connection, pytest.raises(AuthenticationError) as no:
                connection.call(*call)
            return str(no.value)

        inner = "DistributedRPCInvocations"
        assert "eve may not call 'f': client.users" in refused(
            server.calls, "DistributedRPC", "eve", "execute", "f", "x"
        )
        assert "may not call 'g'" in refused(server.calls, "DistributedRPC", "ann", "execute", "g", "x")
        assert "ann may not answer 'f'" in refused(server.invocations, inner, "ann", "fetchRequest", "f")
        assert "ann may not answer" in refused(server.invocations, inner, "ann", "fetchRequests", "f", 1, 0)
        # Of a function without an entry nobody fetches; a request that has ended is nobody's secret.
        assert "storm may not answer 'g'" in refused(server.invocations, inner, "storm", "fetchRequest", "g")

        answers: list[str] = []
        with logged_in(server.calls, "DistributedRPC", "ann") as ann:
            asking = threading.Thread(target=lambda: answers.append(ann.call("execute", "f", "x")))
            asking.start()
            answer_one("storm")
            asking.join(20)
        assert answers == ["x!"]
        # A request that another user's topology has fetched is answered by nobody else.
        asking = threading.Thread(target=lambda: answers.append(server.execute("f", "y")))
        asking.start()
        with logged_in(server.invocations, inner, "storm") as topology:
            (request,) = topology.call("fetchRequests", "f", 1, 20_000)
            for call in (("result", request.request_id, "stolen"), ("failRequest", request.request_id)):
                assert "eve may not answer 'f'" in refused(server.invocations, inner, "eve", *call)
            topology.call("result", request.request_id, "y!")
        asking.join(20)
        assert answers == ["x!", "y!"]
        # Over HTTP by Digest, and with the token.
        for name, wrong in (("eve", "anns secret"), ("nobody", "eves secret")):
            assert httpx.get(f"{server.url}/drpc/f/x", auth=httpx.DigestAuth(name, wrong)).status_code == 401
            for door, service in ((server.calls, "DistributedRPC"), (server.invocations, inner)):
                with pytest.raises(AuthenticationError):
                    UserConnection(door, service, name, wrong).call("execute", "f", "x")
        eve = httpx.get(f"{server.url}/drpc/f/x", auth=httpx.DigestAuth("eve", "eves secret"))
        assert (eve.status_code, eve.json()["error"]) == (403, "Forbidden")
        connection = DRPCConnection(server.invocations, inner, 20.0)
        assert connection.call("fetchRequest", "g").request_id == ""
        connection.close()
