"""`storm-spark pacemaker` as a process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from storm_on_spark.cluster.pacemaker.messages import MessageType, Pulse
from storm_on_spark.runtime.processes.server import free_port
from storm_on_spark.testing.servers.pacemaker_client import RawClient


def command(*pairs: str) -> list[str]:
    options = [word for pair in pairs for word in ("-c", pair)]
    return [sys.executable, "-m", "storm_on_spark.cli", "pacemaker", *options, "--json"]


def test_it_serves_until_it_is_told_to_end(tmp_path: Path) -> None:
    port = free_port()
    with (tmp_path / "log").open("w+") as log:
        with subprocess.Popen(
            command(f"pacemaker.port={port}"), stdout=subprocess.PIPE, stderr=log, text=True
        ) as process:
            try:
                assert process.stdout is not None
                said = json.loads(process.stdout.readline())
                assert said == {"address": f"127.0.0.1:{port}", "pid": process.pid}
                with RawClient(port) as client:
                    client.ask(MessageType.SEND_PULSE, Pulse("/a", b"1"))
                    assert client.ask(MessageType.GET_PULSE, "/a").data == Pulse("/a", b"1")
                    process.send_signal(signal.SIGTERM)
                    assert client.hung_up()
                assert process.wait(30) == 0
            finally:
                process.kill()
        log.seek(0)
        assert f"serving address=127.0.0.1:{port} method=NONE" in log.read()


def test_options_of_a_jvm_are_refused_with_a_sentence() -> None:
    done = subprocess.run(
        command("pacemaker.childopts=-Xmx1g"), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "pacemaker.childopts has options of a JVM" in done.stdout + done.stderr
