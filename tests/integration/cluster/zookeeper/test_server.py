from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from waiting import eventually

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.zookeeper import ZooKeeperServer


def test_what_was_written_survives_a_kill(connect, tmp_path: Path) -> None:
    with ZooKeeperServer(tmp_path / "data", tick=0.2) as server:
        session = connect(server.connect_string)
        session.client.create("/kept", b"value", makepath=True)
        pid = server.pid
        server.kill()
        assert server.pid is None
        assert server.mode is None
        server.start()
        assert server.pid != pid
        assert server.mode == "standalone"
        eventually(lambda: session.state == "CONNECTED")
        assert session.client.get("/kept")[0] == b"value"
        session.close()
    assert (tmp_path / "data").is_dir()


def test_a_temporary_server_leaves_nothing(tmp_path: Path) -> None:
    with ZooKeeperServer(tick=0.2) as server:
        folder, pid = server.data_dir, server.pid
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()
    assert not psutil.pid_exists(pid)


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SetupError, match="Address already in use"):
        ZooKeeperServer(tmp_path, taken.getsockname()[1]).start()


def test_it_is_reachable_from_this_machine_only(zookeeper: ZooKeeperServer) -> None:
    listening = {
        c.laddr.ip.removeprefix("::ffff:")
        for c in psutil.Process(zookeeper.pid).net_connections("tcp")
        if c.status == psutil.CONN_LISTEN and c.laddr.port == zookeeper.port
    }
    assert listening == {"127.0.0.1"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux kills the children of who dies")
def test_it_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    # Started by a thread that ends at once: what counts is the process.
    program = f"""
import pathlib, sys, threading, time
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
server = ZooKeeperServer(pathlib.Path({str(tmp_path)!r}))
thread = threading.Thread(target=server.start)
thread.start()
thread.join()
print(server.pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        server = psutil.Process(int(parent.stdout.readline()))
        assert server.is_running()
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        eventually(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)
