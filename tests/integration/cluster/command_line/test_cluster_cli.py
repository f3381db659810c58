"""`storm-spark dev` and the commands that find it, as processes; no slots, so that no Spark is started."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import jsonschema
import psutil
import pytest
from dev_processes import COMMAND, ROOT, Dev, wait_until
from lengths import PATIENCE_SECS

from storm_on_spark.cli.dev.guard import MARK, clear_up
from storm_on_spark.cli.reference.schema import schema_of
from storm_on_spark.runtime.processes.server import free_port

TOPOLOGY = """
from storm_on_spark import TopologyBuilder
from storm_on_spark.testing import ListSpout
import beside

conf = {"topology.message.timeout.secs": 11, "my.password": "hush"}

def build(conf):
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["a"], fields=["word"]))
    return builder.create_topology()
"""
NO_SLOTS = ("-c", "supervisor.enable=false")


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    found = Dev(tmp_path_factory.mktemp("dev"), *NO_SLOTS)
    try:
        found.start()
        yield found
        found.end(signal.SIGINT)
    finally:
        found.kill()


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("my project")
    (folder / "beside.py").write_text("")
    (folder / "my_words.py").write_text(TOPOLOGY)
    return folder / "my_words.py"


def test_it_says_what_there_is(dev: Dev) -> None:
    assert len(dev.said["nimbuses"]) == 2
    assert dev.said["leader"] in dev.said["nimbuses"]
    assert set(dev.said["processes"]) == {"nimbus-1", "nimbus-2", "supervisor-1", "supervisor-2"}
    assert all(psutil.pid_exists(pid) for pid in dev.said["processes"].values())
    assert Path(dev.said["token_file"]).stat().st_mode & 0o077 == 0
    assert Path(dev.said["folder"]).stat().st_mode & 0o077 == 0


def test_no_secret_is_in_what_others_can_see_of_a_process(dev: Dev) -> None:
    token = Path(dev.said["token_file"]).read_text().strip()
    conf = json.loads((Path(dev.said["folder"]) / "nimbus-1" / "conf.yaml").read_text())
    secrets = [token, conf["storm.zookeeper.auth.payload"].partition(":")[2]]
    for process in dev.processes():
        assert not any(secret in " ".join(process.cmdline()) for secret in secrets)
    for log in Path(dev.said["folder"]).glob("*/daemon.log"):
        assert not any(secret in log.read_text() for secret in secrets)


def test_everything_listens_on_this_host_only(dev: Dev) -> None:
    listening = [
        connection.laddr.ip
        for process in dev.processes()
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 5
    assert {ip.removeprefix("::ffff:") for ip in listening} == {"127.0.0.1"}


def test_a_second_one_is_refused_and_the_first_goes_on(dev: Dev) -> None:
    done = dev.run("dev")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"Error: a `storm-spark dev` already runs here: it has the process id {dev.said['pid']}. Use that one, or end "
        "it with Ctrl-C in its terminal.\n"
    )
    assert dev.document("cluster")["supervisors"] == 2


def test_others_find_it_and_show_it(dev: Dev) -> None:
    nimbuses = dev.document("nimbuses")["nimbuses"]
    assert {f"{row['host']}:{row['port']}" for row in nimbuses} == set(dev.said["nimbuses"])
    assert [row["status"] for row in nimbuses] == ["Leader", "Not a Leader"]
    assert f"2 Nimbuses, {dev.said['leader']} leads; 0 topologies; 2 supervisors" in dev.storm_spark("cluster")
    assert len(dev.document("cluster")["supervisorList"]) == 2
    assert dev.storm_spark("list") == "No topologies.\n"


PROGRAM = """
import sys
from storm_on_spark import ConfigurableTopology, TopologyBuilder
from storm_on_spark.testing import ListSpout
import beside

class Words(ConfigurableTopology):
    def run(self, args):
        builder = TopologyBuilder()
        builder.set_spout("words", ListSpout(["a"], fields=["word"]))
        return self.submit("by-program", self.conf, builder)

if __name__ == "__main__":
    sys.exit(-ConfigurableTopology.start(Words(), sys.argv[1:]))
"""


PLAIN_PROGRAM = """
from storm_on_spark import StormSubmitter, TopologyBuilder
from storm_on_spark.testing import ListSpout

builder = TopologyBuilder()
builder.set_spout("words", ListSpout(["a"], fields=["word"]))
StormSubmitter.submit_topology("plainly", {"topology.message.timeout.secs": 13}, builder.create_topology())
"""


def test_a_program_submits_its_topology(dev: Dev, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "conf.yaml").write_text("topology.message.timeout.secs: 12\n")
    (tmp_path / "plain.py").write_text(PLAIN_PROGRAM)

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(tmp_path / program), *arguments]
        return subprocess.run(
            command, env=dev.environment, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
        )

    def timeout_of(topology: str) -> object:
        return dev.document("status", topology)["configuration"]["topology.message.timeout.secs"]

    with_conf = "program.py", "-conf", str(tmp_path / "conf.yaml")
    done = run(*with_conf)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    try:
        plain = run("plain.py")
        assert (plain.returncode, plain.stdout) == (0, ""), plain.stderr
        assert (timeout_of("by-program"), timeout_of("plainly")) == (12, 13)
        again = run(*with_conf)
        assert again.returncode == 1
        assert "AlreadyAliveError" in again.stderr
    finally:
        dev.run("kill", "by-program", "-w", "0")
        dev.run("kill", "plainly", "-w", "0")
    wait_until(lambda: dev.storm_spark("list") == "No topologies.\n", lambda: dev.storm_spark("list"))


PROJECT = {
    "config.json": '{"envs": {"p": {"options": {"topology.message.timeout.secs": 14}}}, "virtualenv_specs": "venvs/"}',
    "venvs/wordcount.txt": "streamparse>=5\nredis==5.0.0\n",
    "src/spouts.py": """
from streamparse import Spout

class Words(Spout):
    outputs = ["word"]

    def next_tuple(self):
        self.emit(["a"])
""",
    "topologies/wordcount.py": """
from streamparse import Topology
from spouts import Words

class WordCount(Topology):
    words = Words.spec()
""",
}


def test_a_project_of_streamparse_is_submitted_from_its_folder(dev: Dev, tmp_path: Path) -> None:
    for name, content in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    command, environment = [*COMMAND, "submit", "-n", "wordcount"], {**dev.environment, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    try:
        assert "Requirements: venvs/wordcount.txt, without streamparse and pystorm;" in done.stderr
        page = dev.document("status", "wordcount")
        assert page["configuration"]["topology.message.timeout.secs"] == 14
        kept = {
            file.read_text() for file in Path(dev.said["folder"]).glob(f"nimbus-*/**/{page['id']}/**/requirements.txt")
        }
        assert kept == {"redis==5.0.0\n"}
    finally:
        dev.run("kill", "wordcount", "-w", "0")
    wait_until(lambda: dev.storm_spark("list") == "No topologies.\n", lambda: dev.storm_spark("list"))


def test_nobody_without_the_token_is_answered(dev: Dev, tmp_path: Path) -> None:
    wrong = tmp_path / "token"
    wrong.touch(0o600)
    wrong.write_text("f" * 32)
    done = dev.ask("list", "--nimbus", dev.said["leader"], "--token-file", wrong)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "the token is not this cluster's" in done.stderr
    assert "say who you are" in dev.ask("list", "--nimbus", dev.said["leader"]).stderr


def watched(dev: Dev, *arguments: object, until: str) -> str:
    """Returns what `--watch` prints until `until` was there twice; then Ctrl-C ends it in order."""
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments), "--watch"],
        env=dev.environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as watching:
        try:
            assert watching.stdout is not None
            shown = ""
            while shown.count(until) < 2:
                line = watching.stdout.readline()
                assert line, f"it ended: {watching.communicate()}"
                shown += line
            watching.send_signal(signal.SIGINT)
            assert watching.communicate(timeout=60)[1] == ""
            assert watching.returncode == 0
        finally:
            watching.kill()
    return shown


@pytest.mark.representative
def test_the_life_of_a_topology(dev: Dev, words: Path) -> None:
    said = json.loads(dev.run("submit", words, "-c", "topology.min.replication.count=2", "--json").stdout)
    jsonschema.validate(said, schema_of("submit"))
    topology_id = said["id"]
    assert (said["topology"], said["stage"], said["error"]) == ("my-words", "submitted", None)
    assert topology_id.startswith("my-words-")

    (row,) = dev.document("list")["topologies"]
    assert (row["name"], row["status"], row["replicationCount"]) == ("my-words", "ACTIVE", 2)
    assert row["schedulerInfo"] == "no supervisor with a slot is alive"
    assert "no supervisor with a slot is alive" in dev.storm_spark("list")
    page = dev.document("status", "my-words")
    assert page["configuration"]["topology.message.timeout.secs"] == 11
    assert "my.password" not in page["configuration"]
    assert "my-words" in dev.storm_spark("status", "my-words")

    again = dev.run("submit", words, "-c", "topology.priority=3")
    assert again.stderr.count("No effect here: topology.priority (planned).") == 1
    assert again.returncode == 1
    assert f'topology "my-words" is ACTIVE already, as {topology_id}' in again.stderr

    assert watched(dev, "list", until="ACTIVE").count("my-words") >= 2
    assert watched(dev, "status", "my-words", until="ACTIVE").count("my-words") >= 2

    assert dev.storm_spark("deactivate", "my-words").startswith("my-words is inactive")
    assert dev.document("list")["topologies"][0]["status"] == "INACTIVE"
    assert dev.document("deactivate", "my-words") == {"topology": "my-words", "operation": "deactivate"}
    assert dev.document("activate", "my-words") == {"topology": "my-words", "operation": "activate"}

    dev.document("rebalance", "my-words", "-w", "0", "-e", "words=1", "-c", "topology.message.timeout.secs=12")
    wait_until(
        lambda: (
            dev.document("status", "my-words")["msgTimeout"] == 12
            and dev.document("list")["topologies"][0]["status"] == "ACTIVE"
        ),
        lambda: "not rebalanced",
    )
    too_many = dev.ask("rebalance", "my-words", "-e", "words=9")
    assert too_many.exit_code == 2
    assert 'component "words" of topology "my-words" can have 1 to 1 executors' in too_many.stderr

    assert dev.storm_spark("errors", "my-words") == "No errors.\n"
    assert dev.document("errors", "my-words")["errors"] == {}
    log = dev.ask("logs", "my-words")
    assert log.exit_code == 1
    assert "my-words has no log yet" in log.stderr

    assert dev.document("kill", "my-words", "-w", "0")["operation"] == "kill"
    wait_until(lambda: dev.document("list")["topologies"] == [], lambda: "not gone")
    gone = dev.ask("status", "my-words", "--json")
    assert gone.exit_code == 1
    assert json.loads(gone.stdout) == {"error": "there is no topology 'my-words'; there are: none"}


def test_what_is_no_topology_is_said_before_anything_is_sent(dev: Dev, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("topology = 3\n")
    done = dev.run("submit", tmp_path / "broken.py", "--json")
    assert done.returncode == 2
    assert "not a Topology" in json.loads(done.stdout)["error"]
    assert "broken" not in dev.storm_spark("list")


def test_a_leader_that_is_killed_is_started_again_and_a_dev_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    dev = Dev(tmp_path, *NO_SLOTS)
    try:
        leader = dev.start()["leader"]
        (name,) = (f"nimbus-{i + 1}" for i, seed in enumerate(dev.said["nimbuses"]) if seed == leader)
        psutil.Process(dev.said["processes"][name]).kill()

        def other_leads() -> bool:
            rows = dev.document("nimbuses")["nimbuses"]
            led = [f"{row['host']}:{row['port']}" for row in rows if row["status"] == "Leader"]
            return len(rows) == 2 and len(led) == 1 and led != [leader]

        wait_until(other_leads, lambda: dev.storm_spark("nimbuses"), 40)
        wait_until(lambda: dev.storm_spark("list", "--nimbus", leader, *token(dev)), lambda: "not started again", 40)
        assert dev.end(signal.SIGKILL)[0] == -signal.SIGKILL
    finally:
        dev.kill()


def token(dev: Dev) -> tuple[str, str]:
    return "--token-file", dev.said["token_file"]


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.soak)])
def test_it_is_ready_soon_and_nothing_is_left_when_it_ends(tmp_path: Path, number: signal.Signals) -> None:
    streams = ["--xd-containers", "1"] if number == signal.SIGTERM else []
    dev = Dev(tmp_path, *streams)
    try:
        assert dev.start()["ready_secs"] < 30  # on a busy machine
        if streams:
            said = dev.storm_spark("stream", "create", "ticktock", "--definition", "time | log", "--deploy")
            assert said == "Created and deployed new stream 'ticktock'\n"
        code, said = dev.end(number)
        assert code == 0
        assert said.splitlines()[-1] == "It has ended; no processes or files are left."
    finally:
        dev.kill()


def test_a_second_signal_ends_it_at_once_and_nothing_is_left(tmp_path: Path) -> None:
    dev = Dev(tmp_path, *NO_SLOTS)
    try:
        dev.start()
        assert dev.process is not None
        # As if they hung: they don't hear that they are to end.
        for name in ("supervisor-1", "nimbus-1"):
            psutil.Process(dev.said["processes"][name]).suspend()
        dev.process.send_signal(signal.SIGINT)
        assert dev.process.stderr is not None
        for line in dev.process.stderr:
            if line.startswith("Ending"):
                break
        assert dev.end(signal.SIGINT)[0] == 130
    finally:
        dev.kill()


def test_what_nobody_has_told_the_guard_of_is_found_by_its_mark(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    folder.mkdir()
    command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(300)"]
    ours, others = (
        subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, start_new_session=True)
        for environment in ({**os.environ, MARK: str(folder)}, {**os.environ, MARK: f"{folder}-2"})
    )
    try:
        for process in (ours, others):
            assert process.stdout is not None
            process.stdout.readline()
        clear_up(folder, [])
        assert ours.wait(PATIENCE_SECS) == -signal.SIGKILL
        assert others.poll() is None
        assert not folder.exists()
    finally:
        for process in (ours, others):
            process.kill()
            process.communicate()


def test_with_a_java_that_does_not_start_a_sentence_says_so_and_nothing_is_left(tmp_path: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho this Java is broken\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="17.0.1"\n')
    dev = Dev(tmp_path)
    dev.environment |= {"JAVA_HOME": str(tmp_path / "jdk")}
    done = dev.run("dev")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert re.fullmatch(r"Error: the ZooKeeper server on port \d+ ended: this Java is broken", last)
    assert (dev.left(), dev.processes()) == ([], set())


def test_daemons_by_themselves(tmp_path: Path) -> None:
    """A ZooKeeper, a Nimbus and a supervisor, started one by one as in three terminals."""
    dev = Dev(tmp_path)
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> dict:
        process = subprocess.Popen(
            [*COMMAND, *arguments, "--json"],
            env=dev.environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        jsonschema.validate(said, schema_of(arguments[0]))
        return said

    try:
        zookeeper = start("dev-zookeeper", "--port", "0", "--dir", "zoo")["zookeeper"]
        (tmp_path / "conf.yaml").write_text(f"storm.zookeeper.servers: ['{zookeeper}']\nnimbus.thrift.port: 16627\n")
        nimbus = start(
            "nimbus", "--conf", "conf.yaml", "-c", "storm.local.dir=n", "-c", f"nimbus.thrift.port={free_port()}"
        )
        supervisor = start("supervisor", "--conf", "conf.yaml", "-c", "storm.local.dir=s", *NO_SLOTS)
        assert supervisor["slots"] == []
        # Loopback is not a user: who can't read the file is not served.
        token = Path(nimbus["token_file"])
        assert token.is_relative_to(dev.state)
        assert token.stat().st_mode & 0o777 == 0o600
        url = f"http://{nimbus['nimbus']}/api/v1"
        assert httpx.get(f"{url}/cluster/summary").status_code == 401
        assert httpx.post(f"{url}/submissions", json={}).status_code == 401

        def there() -> bool:
            found = dev.document("cluster", "--nimbus", nimbus["nimbus"])
            return [row["id"] for row in found["supervisorList"]] == [supervisor["supervisor"]]

        wait_until(there, lambda: "no supervisor")
        bearer = {"Authorization": f"Bearer {token.read_text().strip()}"}
        [row] = httpx.get(f"{url}/supervisor/summary", headers=bearer).json()["supervisors"]
        logs = row["workerLogsLink"]
        assert [httpx.get(logs, headers=given).status_code for given in ({}, bearer)] == [401, 200]
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)
    assert [process.returncode for process in started] == [0, 0, 0]
    assert (tmp_path / "zoo" / "version-2").is_dir()
    assert list(dev.temporary.iterdir()) == []
