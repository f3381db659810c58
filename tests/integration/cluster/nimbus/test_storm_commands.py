"""The classes behind Storm's own `storm list` and others, unmodified, against a Nimbus with a topology that runs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from storm_jars import JVM, SOURCES, class_path
from world import World, wait_for

from storm_on_spark.cli.main import main
from storm_on_spark.cluster.daemons.nimbus import Nimbus
from storm_on_spark.cluster.daemons.supervisor import Supervisor
from storm_on_spark.cluster.paths import WORKERBEATS
from storm_on_spark.cluster.records import StormBase, WorkerBeat
from storm_on_spark.cluster.supervisor.slots import Phase
from storm_on_spark.cluster.zookeeper.java import find_java
from storm_on_spark.runtime.processes.sessions import session_members

pytestmark = pytest.mark.spark

CLASSES = {
    "list": "ListTopologies",
    "kill": "KillTopology",
    "activate": "Activate",
    "deactivate": "Deactivate",
    "rebalance": "Rebalance",
}
COMMAND_SECS = 120
START_SECS = 120


class Storm:
    """Runs commands as `bin/storm` does: a class in a JVM, with the folder of storm.yaml on the class path.

    Args:
        nimbus: whom they ask.
        folder: for storm.yaml.
    """

    def __init__(self, nimbus: Nimbus, folder: Path) -> None:
        self.nimbus = nimbus
        host, _, port = nimbus.address.partition(":")
        folder.mkdir()
        (folder / "storm.yaml").write_text(f'nimbus.seeds: ["{host}"]\nnimbus.thrift.port: {port}\n')
        logs = f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.xml'}"
        self._java = [find_java(), *JVM, logs, "-cp", f"{folder}:{class_path()}"]

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._java, f"org.apache.storm.command.{CLASSES[command]}", *arguments],
            capture_output=True,
            text=True,
            timeout=COMMAND_SECS,
            check=False,
        )

    def succeeds(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fails(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 1, done.stdout
        return done.stderr


@pytest.fixture
def storm(world: World, tmp_path: Path) -> Storm:
    nimbus = world.local("a")
    wait_for(lambda: (leader := nimbus.view.snapshot().leader) and leader.address == nimbus.address, "a leader")
    return Storm(nimbus, tmp_path / "storm")


@pytest.fixture
def supervisor(world: World, tmp_path: Path) -> Iterator[Supervisor]:
    own = {"storm.local.dir": str(tmp_path / "supervisor"), "supervisor.slots.ports": [6700]}
    soon = {"supervisor.spare.drivers": 0, "supervisor.worker.shutdown.sleep.secs": 1}
    supervisor = Supervisor({**world.conf, **own, **soon})
    supervisor.start()
    yield supervisor
    pids = supervisor.drivers().values()
    supervisor.stop(drivers=True)
    assert not [pid for leader in pids for pid in session_members(leader)], "processes are left"


def test_they_list_stop_rebalance_and_kill_a_topology_that_runs(
    world: World, storm: Storm, supervisor: Supervisor, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    job = Path(__file__).parents[1] / "counting_job.py"
    options = ["--nimbus", storm.nimbus.address, "--name", "counting", "-c", f"counting.notes={notes}"]
    submitted = CliRunner().invoke(main, ["submit", str(job), *options, "-c", "topology.workers=1", "--json"])
    assert submitted.exit_code == 0, submitted.output
    topology_id = json.loads(submitted.stdout)["id"]

    def info() -> dict[str, Any]:
        found = world.state.get(WorkerBeat, WORKERBEATS, topology_id)
        return {} if found is None else found[0].info

    def base() -> StormBase:
        return world.view.snapshot().storms[topology_id]

    def row() -> list[str]:
        lines = [line.split() for line in storm.succeeds("list").splitlines()]
        assert lines[0][:2] == ["Topology_name", "Status"]
        (found,) = (line for line in lines if line[0] == "counting")
        return found

    wait_for(lambda: info().get("emitted", 0) > 0, "it runs", START_SECS)
    name, status, tasks, workers, _, its_id, _ = row()
    assert (name, status, tasks, workers, its_id) == ("counting", "ACTIVE", "3", "1", topology_id)

    storm.succeeds("deactivate", "counting")
    assert row()[1] == "INACTIVE"
    wait_for(lambda: info()["status"] == "INACTIVE" and info()["pending"] == 0, "its spouts are stopped", START_SECS)
    emitted = info()["emitted"]
    storm.succeeds("activate", "counting")
    wait_for(lambda: info()["status"] == "ACTIVE" and info()["emitted"] > emitted, "its spouts emit", START_SECS)

    overrides = json.dumps({"topology.max.spout.pending": 50})
    storm.succeeds("rebalance", "counting", "-w", "0", "-n", "2", "-e", "sum=1", "-t", overrides)
    wait_for(lambda: base().status == "ACTIVE" and base().conf["topology.max.spout.pending"] == 50, "its settings")
    assert base().conf["topology.workers"] == 2
    refused = storm.fails("rebalance", "counting", "-e", "sum=2")
    assert 'component "sum" of topology "counting" can have 1 to 1 executors' in refused

    storm.succeeds("kill", "counting", "-w", "0")
    wait_for(lambda: topology_id not in world.view.snapshot().storms, "it is gone")
    wait_for(lambda: supervisor.slots[6700].slot.phase is Phase.EMPTY, "the end of its driver", START_SECS)
    assert "NotAliveException(msg:there is no topology with the name 'counting')" in storm.fails("kill", "counting")
    assert "counting" not in storm.succeeds("list")
