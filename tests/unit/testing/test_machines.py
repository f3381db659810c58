"""Machines on a network that can be cut."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading

import pytest

from storm_on_spark.api.errors import SetupError
from storm_on_spark.testing.faults.machines import Network, why_no_network

CALL = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 0.5).recv(1)"


def test_a_reason_is_given_where_there_can_be_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert why_no_network() == "needs root and iproute2, for network namespaces"
    with pytest.raises(SetupError, match="needs root and iproute2"):
        Network().start()


def test_a_machine_is_reached_until_it_is_cut_off_and_again_afterwards() -> None:
    if (reason := why_no_network()) is not None:
        pytest.skip(reason)
    with Network() as network, socket.create_server((f"{network.network}.1", 0)) as server:
        threading.Thread(target=_answer, args=(server,), daemon=True).start()
        one, other = network.machines
        assert _reaches(network, one, server)
        with network.cut_off(one):
            assert not _reaches(network, one, server)
            assert _reaches(network, other, server)
        assert _reaches(network, one, server)
        server.shutdown(socket.SHUT_RDWR)  # ends the thread
    with pytest.raises(OSError, match="assign"):
        socket.create_server((f"{network.network}.1", 0))


def _answer(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.send(b"x")


def _reaches(network: Network, host: str, server: socket.socket) -> bool:
    address, port = server.getsockname()
    command = [*network.command(host), sys.executable, "-c", CALL, address, str(port)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
