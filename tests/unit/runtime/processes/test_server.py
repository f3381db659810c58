"""Servers in separate processes: start, answer, end, and what is left then."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.server import HOST, Server, free_port, free_ports, last_words

ECHO = """
import pathlib, socket, subprocess, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"])
    pathlib.Path("child").write_text(str(child.pid))
    while True:
        connection, _ = server.accept()
        connection.sendall(b"here")
        connection.close()
"""


class EchoServer(Server):
    kind = "echo"
    title = "echo server"
    code = ECHO

    def _commands(self) -> Mapping[str, Sequence[str]]:
        return {self.kind: [sys.executable, "-I", "-S", "-c", self.code, str(self.port)]}

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), 1) as connection:
            return connection.recv(4) == b"here"
        return False


class BrokenServer(EchoServer):
    code = "import sys; sys.exit('a b INFO c\\n\\tat a line of a stack trace\\nno room for it')"


class SlowServer(EchoServer):
    code = "import time; time.sleep(60)"


def test_it_keeps_its_data_and_its_port_over_an_end_and_leaves_nothing_that_it_has_started(tmp_path: Path) -> None:
    with EchoServer(tmp_path / "data") as server:
        port, pid = server.port, server.pid
        child = int((tmp_path / "data" / "child").read_text())
        with pytest.raises(SetupError, match=f"the echo server on port {port} runs already"):
            server.start()
        server.kill()
        assert server.pid is None
        assert not psutil.pid_exists(pid)
        assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
        server.start()
        assert (server.port, server.pid != pid) == (port, True)
        server.stop()
    assert (tmp_path / "data" / "child").exists()


def test_temporary_data_are_for_this_user_only_and_go_with_it() -> None:
    with EchoServer() as server:
        assert server.data_dir.stat().st_mode & 0o777 == 0o700
    assert not server.data_dir.exists()


def test_one_that_is_paused_does_not_answer(tmp_path: Path) -> None:
    with EchoServer(tmp_path) as server:
        server.pause()
        with socket.create_connection((HOST, server.port), 5) as connection:
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.recv(4)
        server.resume()
        server.wait_ready()


def test_a_chosen_port_that_is_taken_is_replaced_and_a_given_one_is_an_error(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=rf"on port {port} ended: .*already in use"):
            EchoServer(tmp_path, port).start()
        server = EchoServer(tmp_path)
        server.port = port
        with server:
            assert server.port != port


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (BrokenServer, "the echo server on port .* ended: no room for it$"),
        (SlowServer, "doesn't serve after 0.2 s: it"),
    ],
)
def test_one_that_does_not_come_up_says_why_and_leaves_nothing(server: type[EchoServer], words: str) -> None:
    made = server()
    with contextlib.closing(made), pytest.raises(SetupError, match=words):
        made.start(timeout=0.2 if server is SlowServer else 30)
    assert made.pid is None
    assert not made.data_dir.exists()


def test_a_program_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    class NoServer(EchoServer):
        def _commands(self) -> Mapping[str, Sequence[str]]:
            return {"echo": [str(tmp_path / "no-program")]}

    with pytest.raises(SetupError, match=r"^the echo server on port \d+ .*/no-program"):
        NoServer(tmp_path).start()


def test_last_words_are_those_of_all_logs_without_information(tmp_path: Path) -> None:
    first, second, none = tmp_path / "first", tmp_path / "second", tmp_path / "none"
    first.write_text("1 INFO up\n2 ERROR down\n\tat somewhere\n\n")
    second.write_text("3 WARN late\n")
    assert last_words(first, none, second) == "2 ERROR down | 3 WARN late"
    assert last_words(first, none, second, lines=1) == "3 WARN late"
    first.write_text("1 INFO up\n2 INFO down\n")
    assert last_words(first) == "2 INFO down"
    assert last_words(none) == "it said nothing"


def test_free_ports_are_different() -> None:
    assert len(set(free_ports(20))) == 20
    chosen = free_port()
    assert all(chosen not in free_ports(300, besides=chosen) for _ in range(100))
    with socket.create_server((HOST, free_port())):
        pass
