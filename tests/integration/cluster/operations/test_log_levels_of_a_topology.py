"""Log levels of a running topology: until their time is over, and over a failover."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hand_written import wait_until

from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.cli.main import main
from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.testing.simulated.cluster import SimulatedCluster


def levels_in(folder: Path) -> dict[str, Any]:
    """Returns what the processes of the one topology that runs are told."""
    found = list(folder.glob("**/slots/*/log-levels.json"))
    return json.loads(found[0].read_bytes()) if found else {}


def test_levels_reach_the_driver_outlive_it_and_end(zookeeper: ZooKeeperServer, root: str, tmp_path: Path) -> None:
    with SimulatedCluster(zookeeper.connect_string, tmp_path, root) as cluster:
        nimbus = cluster.nimbus("n1")
        cluster.supervisor("s1", ports=(6700,))
        topology = cluster.submit("words")
        first = cluster.runs(topology)
        client = cluster.client()

        words = ["set-log-level", "words", "--nimbus", nimbus.address, "--json"]
        done = CliRunner().invoke(main, [*words, "-l", "my.bolt=debug", "-l", "ROOT=WARN:600"])
        assert done.exit_code == 0, done.output
        assert set(json.loads(done.stdout)["namedLoggerLevels"]) == {"my.bolt", "ROOT"}
        wait_until(lambda: levels_in(tmp_path) == {"my.bolt": "DEBUG", "ROOT": "WARN"}, "levels")
        wait_until(lambda: client.topology("words")["logLevels"] == {"my.bolt": "DEBUG", "ROOT": "WARN"}, "status")

        # Another driver has them, too.
        os.kill(first, signal.SIGKILL)
        cluster.runs(topology, but=first)
        wait_until(lambda: levels_in(tmp_path) == {"my.bolt": "DEBUG", "ROOT": "WARN"}, "levels after the failover")

        client.set_log_levels("words", {"ROOT": ("ERROR", 2), "my.bolt": None})
        wait_until(lambda: levels_in(tmp_path) == {"ROOT": "ERROR"}, "the change")
        wait_until(lambda: levels_in(tmp_path) == {}, "the end of its time")
        wait_until(lambda: client.log_levels("words") == {}, "nothing is left")

        assert CliRunner().invoke(main, [*words, "-l", "a=LOUD"]).exit_code == 1
        assert CliRunner().invoke(main, [*words, "-l", "a"]).exit_code == 2
        with pytest.raises(NotAliveError):
            client.set_log_levels("nobody", {"a": ("INFO", 0)})
        by_whom = cluster.state.changes()[0].what
        assert by_whom == "log level, ROOT=ERROR for 2 s, my.bolt as before"
