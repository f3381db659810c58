"""`storm-spark drpc` and `storm-spark drpc-client`."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import jsonschema
from click.testing import CliRunner, Result

from storm_on_spark.cli.main import main
from storm_on_spark.cli.reference.schema import schema_of
from storm_on_spark.cluster.drpc.server import DRPCServer, Ports
from storm_on_spark.drpc.connection import Address, DRPCConnection


def ask(server: DRPCServer, *arguments: str) -> Result:
    address = server.calls
    return CliRunner().invoke(
        main, ["drpc-client", *arguments, "-c", f"drpc.port={address.port}", "-c", f"drpc.servers=[{address.host}]"]
    )


def answer(server: DRPCServer, count: int) -> None:
    """Answers requests of `f`; "bad" fails."""
    connection = DRPCConnection(server.invocations, "DistributedRPCInvocations", 20.0)
    while count:
        for request in connection.call("fetchRequests", "f", 1, 10_000):
            count -= 1
            if request.func_args == "bad":
                connection.call("failRequest", request.request_id)
            else:
                connection.call("result", request.request_id, request.func_args + "!")
    connection.close()


def test_the_client_prints_results_and_fails_with_1_or_2() -> None:
    with DRPCServer({}, Ports(0, 0, 0)) as server:
        answering = threading.Thread(target=answer, args=(server, 7), daemon=True)
        answering.start()
        assert ask(server, "f", "a", "f", "b").stdout == "a!\nb!\n"
        assert ask(server, "-f", "f", "c", "d").stdout == "c!\nd!\n"
        found = json.loads(ask(server, "f", "e", "--json").stdout)
        assert found == {"results": [{"function": "f", "arguments": "e", "result": "e!"}]}
        jsonschema.validate(found, schema_of("drpc-client"))
        failed = ask(server, "f", "bad")
        assert (failed.exit_code, failed.stderr) == (1, "Error: the request failed\n")
        failed = ask(server, "f", "bad", "--json")
        assert (failed.exit_code, json.loads(failed.stdout)["error"]) == (1, "the request failed")
        answering.join(20)
    assert ask(server, "f", "x").exit_code == 1
    odd = ask(server, "f", "x", "g")
    assert odd.exit_code == 2
    assert "'g' has no arguments" in odd.stderr


def free_ports(count: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return found


def test_ctrl_c_ends_the_server_at_once_and_tells_whoever_waits(tmp_path: Path) -> None:
    calls, invocations, http = free_ports(3)
    ports = [f"drpc.port={calls}", f"drpc.invocations.port={invocations}", f"drpc.http.port={http}"]
    options = [word for pair in ports for word in ("-c", pair)]
    command = [sys.executable, "-m", "storm_on_spark.cli", "drpc", "--open", "--json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert process.stdout is not None
        up = json.loads(process.stdout.readline())
        jsonschema.validate(up, schema_of("drpc"))
        assert (up["thrift"], up["token_file"], up["pid"]) == (f"127.0.0.1:{calls}", None, process.pid)
        answered: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: answered.append(httpx.get(f"{up['http']}/drpc/f/x", timeout=30)))
        asking.start()
        # Taken once a topology can fetch it.
        connection = DRPCConnection(Address("127.0.0.1", invocations), "DistributedRPCInvocations", 20.0)
        assert [each.func_args for each in connection.call("fetchRequests", "f", 1, 10_000)] == ["x"]
        connection.close()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
        asking.join(10)
    finally:
        process.kill()
        process.wait()
    assert [(each.status_code, each.json()["error"]) for each in answered] == [(503, "SERVER_SHUTDOWN")]
    assert process.returncode == 0, said
    assert "Traceback" not in said
