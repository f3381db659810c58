"""Jobs on real containers: restart at the failed step, splits, and containers that die or stand still in a step."""

from __future__ import annotations

import contextlib
import hashlib
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from nodes import Shell, zookeeper_cli
from waiting import eventually

from lab.streams.cluster import Cluster, Node
from storm_on_spark.cluster.zookeeper.server import ZooKeeperServer

pytestmark = [pytest.mark.integration]

HOLD = """\
import os, time
from pathlib import Path
from storm_on_spark.xd.modules import ModuleDeclaration, Option

def hold(context, dir):
    "Shows that it runs, until it may end."
    folder = Path(dir)
    (folder / f"{context.step}-{context.execution}.tmp").write_text(str(os.getpid()))
    (folder / f"{context.step}-{context.execution}.tmp").rename(folder / f"{context.step}-{context.execution}.pid")
    print("holding")
    while not (folder / f"{context.step}.end").exists():
        time.sleep(0.02)
    return (folder / f"{context.step}.end").read_text()

MODULE = ModuleDeclaration("job", "hold", "Waits.", hold, (Option("dir", "text", None, "Where."),))
"""


class Jobs:
    """A cluster of two admins and two containers."""

    def __init__(self, cluster: Cluster, connect: str) -> None:
        self.cluster = cluster
        self.connect = connect

    def ask(self, method: str, path: str, body: object = None, admin: int = 0) -> Any:
        """Asks an admin."""
        return self.cluster.ask(method, path, body, list(self.cluster.admins)[admin])

    def deploy(self, name: str, definition: str) -> None:
        """Creates a job and deploys it."""
        self.ask("POST", "/jobs/definitions", {"name": name, "definition": definition})
        assert self.ask("POST", f"/jobs/deployments/{name}", {})["state"] == "deployed"

    def launch(self, name: str, **parameters: str) -> int:
        """Launches a job; returns the execution."""
        return int(self.ask("POST", "/jobs/executions", {"name": name, "parameters": parameters})["executionId"])

    def execution(self, number: int) -> Any:
        """Returns an execution, as the other admin shows it."""
        return self.ask("GET", f"/jobs/executions/{number}", admin=1)

    def ended(self, number: int) -> Any:
        """Returns an execution that has ended."""

        def found() -> Any:
            view = self.execution(number)
            return view if view["endTime"] is not None else None

        return eventually(found, self.cluster.logs)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    home = tmp_path_factory.mktemp("xd")
    with ZooKeeperServer(tick=0.5) as server, Cluster(home, server.connect_string, session_millis=6000) as cluster:
        cluster.start(admins=2, containers=2)
        body = {"file": "hold.py", "source": HOLD, "sha256": hashlib.sha256(HOLD.encode()).hexdigest()}
        assert cluster.ask("POST", "/modules/files", body)["type"] == "job"
        assert not (home / "modules" / "job").exists(), "the module's record is in ZooKeeper only"
        yield Jobs(cluster, server.connect_string)


def statuses(execution: Any) -> dict[str, str]:
    return {step["name"]: step["status"] for step in execution["steps"]}


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pid_of(folder: Path, step: str, number: int) -> int:
    path = folder / f"{step}-{number}.pid"
    eventually(path.exists, timeout=20)
    return int(path.read_text())


def test_a_job_that_failed_in_its_second_step_is_restarted_there(jobs: Jobs, tmp_path: Path) -> None:
    database = tmp_path / "shop.db"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)")
    stamp = f"timestampfile --directory={tmp_path} --append=true --fileName="
    file = "--resources=\"#{jobParameters['file']}\""
    with Shell(next(iter(jobs.cluster.admins))) as shell:
        definition = f"first:{stamp}first || filejdbc {file} --names=id,item --tableName=orders --database={database}"
        text = definition.replace('"', '\\"') + f" || third:{stamp}third"
        assert shell(f'job create load --definition "{text}"') == ["Successfully created job 'load'"]
        assert shell("job deploy load") == ["Deployed job 'load'"]
        orders = tmp_path / "orders.csv"
        launched = shell(f'job launch load --params \'{{"file": "{orders}"}}\'')
        assert launched == ["Successfully submitted launch request for job 'load'"]
        number = int(shell.rows("job execution list")[0][0])
        failed = jobs.ended(number)
        assert failed["status"] == "FAILED"
        assert statuses(failed) == {"first": "COMPLETED", "filejdbc": "FAILED", "third": "WAITING"}
        assert failed["steps"][1]["exitCode"] == 1
        assert f"none matches {orders}" in failed["steps"][1]["error"]
        assert "OptionError" in Path(failed["steps"][1]["log"]).read_text()

        orders.write_text("1,tea\n2,milk\n")
        restarted = shell(f"job execution restart --id {number}")
        assert restarted == [f"Restarted Job execution that had executionId '{number}'"]
        again = jobs.ended(int(shell.rows("job execution list")[0][0]))
        assert (again["status"], again["restarts"]) == ("COMPLETED", number)
        assert [step["executionId"] == number for step in again["steps"]] == [True, False, False]
        with contextlib.closing(sqlite3.connect(database)) as connection:
            assert connection.execute("SELECT count(*) FROM orders").fetchone() == (2,)
        assert (lines(tmp_path / "first.txt"), lines(tmp_path / "third.txt")) == (1, 1)
        path = f"/xd/executions/{number:010}"
        told = zookeeper_cli(jobs.connect, "ls /xd/jobs", "get /xd/deployments/jobs/load/status", f"get {path}")
        assert (told[0], told[1]) == ("[load]", '{"state":"deployed"}')
        assert '"status":"FAILED"' in told[2]
        assert shell("job undeploy load") == ["Un-deployed Job 'load'"]
        assert shell("job destroy load") == ["Destroyed job 'load'"]
        # The history stays.
        assert shell.rows("job execution list")[0][4:] == ["COMPLETED", "Undeployed", "Destroyed"]
    restart = httpx.put(f"{next(iter(jobs.cluster.admins))}/jobs/executions/{number}?restart=true", trust_env=False)
    assert (restart.status_code, "was restarted already" in restart.text) == (409, True)


def test_a_split_waits_for_all_of_its_branches_and_a_job_can_be_stopped(jobs: Jobs, tmp_path: Path) -> None:
    hold = f"hold --dir={tmp_path}"
    jobs.deploy("split", f"<a:{hold} & b:{hold}> || c:{hold}")
    number = jobs.launch("split")
    pids = [pid_of(tmp_path, step, number) for step in ("a", "b")]
    assert all(map(runs, pids)), "the branches run at the same time"
    again = httpx.post(f"{next(iter(jobs.cluster.admins))}/jobs/executions", json={"name": "split"}, trust_env=False)
    assert (again.status_code, f"runs already, as execution {number}" in again.text) == (409, True)
    (tmp_path / "a.end").touch()
    eventually(lambda: statuses(jobs.execution(number))["a"] == "COMPLETED", jobs.cluster.logs)
    assert statuses(jobs.execution(number)) == {"a": "COMPLETED", "b": "STARTED", "c": "WAITING"}
    (tmp_path / "b.end").touch()
    pid = pid_of(tmp_path, "c", number)
    stopped = jobs.ask("PUT", f"/jobs/executions/{number}?stop=true")
    assert (stopped["status"], statuses(stopped)["c"]) == ("STOPPED", "STOPPED")
    assert not runs(pid)
    (tmp_path / "c.end").touch()
    again = jobs.ended(int(jobs.ask("PUT", f"/jobs/executions/{number}?restart=true")["executionId"]))
    assert (again["status"], again["steps"][0]["executionId"]) == ("COMPLETED", number)
    assert not (tmp_path / f"a-{again['executionId']}.pid").exists()
    jobs.ask("DELETE", "/jobs/definitions/split")


@pytest.mark.parametrize("fault", [signal.SIGKILL, signal.SIGSTOP])
def test_a_step_fails_with_its_container_and_is_never_run_twice_at_once(
    jobs: Jobs, tmp_path: Path, fault: signal.Signals
) -> None:
    name = f"night{fault.value}"
    stamp = f"timestampfile --directory={tmp_path} --append=true --fileName=first"
    jobs.deploy(name, f"{stamp} || hold --dir={tmp_path}")
    number = jobs.launch(name)
    pid = pid_of(tmp_path, "hold", number)
    container = jobs.execution(number)["steps"][1]["containerId"]
    node: Node = jobs.cluster.containers.pop(container)
    node.kill() if fault == signal.SIGKILL else node.pause()
    failed = jobs.ended(number)
    # The process of the step ends before anybody else may run it, also while its container stands still.
    assert not runs(pid)
    assert (failed["status"], statuses(failed)["hold"]) == ("FAILED", "FAILED")
    assert f"container {container} departed" in failed["steps"][1]["error"]

    restarted = jobs.ask("PUT", f"/jobs/executions/{number}?restart=true")["executionId"]
    assert runs(pid_of(tmp_path, "hold", restarted))
    (tmp_path / "hold.end").touch()
    done = jobs.ended(restarted)
    assert done["status"] == "COMPLETED"
    assert done["steps"][1]["containerId"] != container
    assert lines(tmp_path / "first.txt") == 1
    node.resume()
    jobs.ask("DELETE", f"/jobs/definitions/{name}")
    if fault == signal.SIGKILL:
        jobs.cluster.start(containers=1)


def test_a_leader_that_dies_leaves_executions_and_their_transitions_to_the_next(jobs: Jobs, tmp_path: Path) -> None:
    stamp = f"timestampfile --directory={tmp_path} --append=true"
    jobs.deploy("handed", f"first:hold --dir={tmp_path} | 'NO *' = {stamp} --fileName=none || {stamp} --fileName=some")
    number = jobs.launch("handed")
    pid_of(tmp_path, "first", number)
    (leading,) = zookeeper_cli(jobs.connect, "get /xd/admins")
    leader = next(url for url in jobs.cluster.admins if url.rpartition("/")[2] in leading)
    jobs.cluster.admins.pop(leader).kill()
    (tmp_path / "first.tmp").write_text("NO ROWS")
    (tmp_path / "first.tmp").rename(tmp_path / "first.end")
    jobs.cluster.start(admins=1)
    ended = jobs.ended(number)
    assert (ended["status"], ended["steps"][0]["exitStatus"]) == ("COMPLETED", "NO ROWS")
    # The step aside stands before the one that was not run.
    assert statuses(ended) == {"first": "COMPLETED", "timestampfile1": "COMPLETED", "timestampfile": "SKIPPED"}
    assert (lines(tmp_path / "none.txt"), lines(tmp_path / "some.txt")) == (1, 0)


def test_a_counter_of_two_streams_is_their_sum_at_any_admin(jobs: Jobs) -> None:
    for name, count in (("few", 20), ("many", 50)):
        text = f"rate --maxMessages={count} --messagesPerSecond=500 | counter --name=shared"
        jobs.cluster.create(name, text)
        jobs.cluster.deploy(name)

    def value(admin: int) -> int:
        url = list(jobs.cluster.admins)[admin]
        answer = httpx.get(f"{url}/metrics/counters/shared", trust_env=False)
        return int(answer.json().get("value", 0))

    for admin in (0, 1):
        eventually(lambda admin=admin: value(admin) == 70, jobs.cluster.logs)
    jobs.ask("DELETE", "/streams/deployments/few")
    jobs.cluster.deploy("few")
    with Shell(next(iter(jobs.cluster.admins))) as shell:
        assert shell("counter display shared") == ["70"]
        assert shell.rows("counter list") == [["shared"]]
    jobs.ask("DELETE", "/streams/definitions")
