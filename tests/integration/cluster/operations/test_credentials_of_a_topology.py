"""Credentials pushed to a running topology: over a failover, by its own users, and shown nowhere."""

from __future__ import annotations

import json
import os
import signal
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hand_written import wait_until
from secrets_on_disk import holding

from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.cli.main import main
from storm_on_spark.cluster.errors import TransitionError
from storm_on_spark.cluster.paths import CREDENTIALS
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.testing.simulated.cluster import SimulatedCluster

FIRST, SECOND = "first-secret-value", "second-secret-value"


def given_in(folder: Path) -> dict[str, str]:
    """Returns what the processes of the one topology that runs are given."""
    for parent, _, names in os.walk(folder):
        file = Path(parent, "credentials.json")
        if file.name in names and file.parts[-3] == "slots":
            try:
                assert stat.S_IMODE(file.stat().st_mode) == 0o600
                return json.loads(file.read_bytes())
            except FileNotFoundError:  # the driver took it away meanwhile
                continue
    return {}


def test_the_newest_outlive_a_driver_and_are_shown_nowhere(
    zookeeper: ZooKeeperServer, root: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef" * 2)
    token.chmod(0o600)
    caplog.set_level("DEBUG")
    conf = {"nimbus.auth.token.file": os.fspath(token)}
    folder = tmp_path / "cluster"
    with SimulatedCluster(zookeeper.connect_string, folder, root, **conf) as cluster:
        nimbus = cluster.nimbus("n1")
        cluster.supervisor("s1", ports=(6700,))
        topology = cluster.submit("words")
        first = cluster.runs(topology)
        client = cluster.client()
        client.push_credentials("words", {"token": FIRST})
        wait_until(lambda: given_in(folder) == {"token": FIRST}, "the first credentials")

        # Writers of the same topology at once: each is answered, whoever was first.
        with ThreadPoolExecutor(8) as threads:
            pushed = [threads.submit(client.push_credentials, "words", {"token": FIRST}) for _ in range(20)]
            others = [threads.submit(change, "words") for change in (client.deactivate, client.activate) * 10]
            for answer in (*pushed, *others):
                answer.result()

        options = ["--nimbus", nimbus.address, "--token-file", os.fspath(token), "--json"]
        text = f"# renewed\ntoken={SECOND}\nuser: ann\n"
        done = CliRunner().invoke(main, ["upload-credentials", "words", "-", *options], input=text)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout) == {"topology": "words", "credentials": 2}
        newest = {"token": SECOND, "user": "ann"}
        wait_until(lambda: given_in(folder) == newest, "the newest")

        os.kill(first, signal.SIGKILL)
        second = cluster.runs(topology, but=first)
        wait_until(lambda: given_in(folder) == newest, "the newest after a failover")
        for of_process in ("environ", "cmdline"):
            assert SECOND.encode() not in Path(f"/proc/{second}/{of_process}").read_bytes()

        with pytest.raises(TransitionError, match="64,000"):
            client.push_credentials("words", {"token": SECOND * 5000})
        with pytest.raises(NotAliveError):
            client.push_credentials("nobody", {"token": SECOND})
        record = cluster.state.get_bytes(CREDENTIALS, topology)
        assert record is not None
        shown: list[Any] = [record[0].decode(), done.output, caplog.text]
        shown += [client.topology("words"), [repr(change) for change in cluster.state.changes()]]
        nodes = [cluster.state.get_bytes(kind, topology) for kind in ("storms", "workerbeats", "assignments")]
        shown += [repr(node) for node in nodes]
        for secret in (FIRST, SECOND):
            assert secret not in json.dumps(shown, default=str)
            assert {Path(file).name for file in holding(folder, secret)} <= {"credentials.json"}
        assert "credentials, 2 of them" in str(shown)

        client.push_credentials("words", {})
        wait_until(lambda: given_in(folder) == {}, "none are left")
        client.push_credentials("words", {"token": FIRST})
        wait_until(lambda: given_in(folder) == {"token": FIRST}, "the first credentials again")
        client.kill("words", 0)
        wait_until(lambda: not cluster.state.children(CREDENTIALS), "they go with the topology")
        wait_until(lambda: not holding(folder, FIRST), "the driver takes the file with it")
