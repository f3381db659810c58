"""streamparse's `sparse` and the classes behind Storm's own commands, unmodified, against a Nimbus and what it runs."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from storm_jars import JVM, ROOT, SOURCES, class_path
from world import World, wait_for

from storm_on_spark.api.info import ALL_TIME, ComponentWindow, LatencyInfo, StreamCounts, WindowInfo
from storm_on_spark.cluster.daemons.nimbus import Nimbus
from storm_on_spark.cluster.daemons.supervisor import Supervisor
from storm_on_spark.cluster.paths import WORKERBEATS
from storm_on_spark.cluster.records import ErrorRecord, StormBase, WorkerBeat
from storm_on_spark.cluster.supervisor.slots import Phase
from storm_on_spark.metrics.packed import pack_windows
from storm_on_spark.runtime.processes.sessions import session_members
from storm_on_spark.spark.session.jvm.java import require_java

pytestmark = pytest.mark.spark

CLASSES = {
    "list": "ListTopologies",
    "kill": "KillTopology",
    "activate": "Activate",
    "deactivate": "Deactivate",
    "rebalance": "Rebalance",
    "get-errors": "GetErrors",
    "blobstore": "Blobstore",
}
# With the storm.py that comes with us: neither the project nor its jar has one.
SCRIPT = """
import storm

class Exclaim(storm.BasicBolt):
    def process(self, tup):
        storm.emit([f"{tup.values[0]}!"])

Exclaim().run()
"""
STREAMPARSE = "streamparse==5.0.1"
# Its commands import pkg_resources. Its statistics compare versions as setuptools did before 66, which Python 3.12 does
# not import.
SETUPTOOLS = "setuptools<66" if sys.version_info < (3, 12) else "setuptools<81"
COMMAND_SECS = 120
DIGEST = "org.apache.storm.security.auth.digest.DigestSaslTransportPlugin"
# Storm's clients try a failed login again.
ONCE = ("storm.nimbus.retry.times: 0", "storm.nimbus.retry.interval.millis: 100")
START_SECS = 120


class Storm:
    """Runs commands as `bin/storm` does: a class in a JVM, with the folder of storm.yaml on the class path.

    Args:
        nimbus: whom they ask.
        folder: for storm.yaml.
        more: lines of it.
    """

    def __init__(self, nimbus: Nimbus, folder: Path, *more: str) -> None:
        self.nimbus = nimbus
        host, _, port = nimbus.address.partition(":")
        folder.mkdir()
        lines = [f'nimbus.seeds: ["{host}"]', f"nimbus.thrift.port: {port}", *more]
        (folder / "storm.yaml").write_text("\n".join(lines) + "\n")
        logs = f"-Dlog4j2.configurationFile={SOURCES / 'log4j2.xml'}"
        self._java = [str(require_java().home / "bin" / "java"), *JVM, logs, "-cp", f"{folder}:{class_path()}"]

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
    nimbus = world.nimbus("a")
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


class Sparse:
    """Runs streamparse's command line in the project that its quickstart makes.

    Args:
        nimbus: whom it asks.
        folder: for the project.
    """

    def __init__(self, nimbus: Nimbus, folder: Path) -> None:
        self.nimbus = nimbus
        self._installed = installed()
        self._python = {"PYTHONPATH": str(self._installed), "PYTHONWARNINGS": "ignore"}
        self.folder = folder
        template = self._installed / "streamparse" / "bootstrap" / "project"
        for part in ("src", "topologies", "virtualenvs"):
            shutil.copytree(template / part, folder / part)
        # With one more bolt, which is a script that imports Storm's library.
        (folder / "src" / "exclaim.py").write_text(SCRIPT)
        words = folder / "topologies" / "wordcount.py"
        options = 'command="python3", script="exclaim.py", inputs=[count_bolt], outputs=["word"]'
        more = f"    exclaim = ShellBolt.spec({options})\n"
        words.write_text(words.read_text().replace("import Grouping", "import Grouping, ShellBolt") + more)
        # Without Leiningen, which packs `src` as `resources`, and without SSH to machines with virtual environments.
        self.jar = folder / "words.jar"
        with zipfile.ZipFile(self.jar, "w") as jar:
            for file in sorted(path for path in (folder / "src").rglob("*.*") if path.is_file()):
                jar.write(file, f"resources/{file.relative_to(folder / 'src')}")
        config = json.loads((template / "config.jinja2.json").read_text())
        # With it, sparse puts an option of streamparse_run before the script of every command.
        del config["serializer"]
        nowhere = {"workers": ["localhost"], "use_ssh_for_nimbus": False, "use_virtualenv": False}
        port = nimbus.address.rpartition(":")[2]
        config["envs"]["prod"] |= {**nowhere, "nimbus": nimbus.address, "ui.port": int(port)}
        (folder / "config.json").write_text(json.dumps(config))
        # Its statistics ask Leiningen only for the version of Storm that the project names.
        programs = folder / "bin"
        programs.mkdir()
        (programs / "lein").write_text("""#!/bin/sh\necho '[org.apache.storm/storm-core "2.8.3"]'\n""")
        (programs / "lein").chmod(0o755)
        self._path = f"{programs}:{os.environ['PATH']}"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from streamparse.cli.sparse import main; main()", *arguments],
            # It asks for LEIN_ROOT where root runs it, though it needs no Leiningen here.
            env={**os.environ, "PATH": self._path, **self._python, "LEIN_ROOT": "1"},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECS,
            check=False,
        )

    def succeeds(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def cells(self, *arguments: str) -> set[str]:
        """Returns the cells of the tables that a command prints, without blanks: what is too wide goes on below."""
        found: set[str] = set()
        row: list[str] = []
        for line in self.succeeds(*arguments, "-e", "prod").splitlines():
            if line.startswith("|"):
                parts = [part.replace(" ", "") for part in line.strip("|").split("|")]
                row = list(map(str.__add__, row, parts)) if row else parts
            else:
                found.update(row)
                row = []
        # What sparse prints for a field that an answer lacks.
        assert "MISSING" not in found
        return found


def installed() -> Path:
    """Returns a folder with streamparse and what it needs; installs it there if it is not."""
    folder = (
        ROOT
        / "build"
        / f"{STREAMPARSE}-{SETUPTOOLS.replace('<', '-')}-{sys.version_info.major}.{sys.version_info.minor}"
    )
    if not folder.is_dir():
        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            new = Path(scratch) / "new"
            command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile"]
            command += ["--target", str(new), STREAMPARSE, SETUPTOOLS]
            done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
            assert done.returncode == 0, done.stderr
            new.rename(folder)
    return folder


@pytest.fixture
def sparse(storm: Storm, tmp_path: Path) -> Sparse:
    (tmp_path / "project").mkdir()
    return Sparse(storm.nimbus, tmp_path / "project")


def test_sparse_submits_a_project_that_storms_commands_steer_and_sparse_kills(
    world: World, storm: Storm, sparse: Sparse, supervisor: Supervisor
) -> None:
    submit = ("submit", "-e", "prod", "-n", "wordcount", "-j", str(sparse.jar), "-o", "topology.workers=1")
    assert "Submitting wordcount topology to nimbus...done" in sparse.succeeds(*submit)
    ((topology_id, submitted),) = wait_for(lambda: world.view.snapshot().storms, "the topology").items()
    assert (submitted.name, submitted.status) == ("wordcount", "ACTIVE")

    def info() -> dict[str, Any]:
        found = world.state.get(WorkerBeat, WORKERBEATS, topology_id)
        return {} if found is None else found[0].info

    def base() -> StormBase:
        return world.view.snapshot().storms[topology_id]

    def row() -> list[str]:
        lines = [line.split() for line in storm.succeeds("list").splitlines()]
        assert lines[0][:2] == ["Topology_name", "Status"]
        (found,) = (line for line in lines if line[0] == "wordcount")
        return found

    wait_for(lambda: info().get("emitted", 0) > 0, "it runs", START_SECS)
    wait_for(lambda: info()["components"]["exclaim"]["emitted"] > 0, "the script exclaims", START_SECS)
    name, status, tasks, workers, _, its_id, _ = row()
    assert (name, status, tasks, workers, its_id) == ("wordcount", "ACTIVE", "5", "1", topology_id)
    assert {topology_id, "wordcount", "ACTIVE"} <= sparse.cells("list")
    again = sparse.run(*submit)
    assert again.returncode != 0
    assert f"is ACTIVE already, as {topology_id}" in again.stderr

    storm.succeeds("deactivate", "wordcount")
    wait_for(lambda: row()[1] == "INACTIVE", "storm list knows of it")
    wait_for(lambda: info()["status"] == "INACTIVE", "its spouts are stopped", START_SECS)
    emitted = info()["emitted"]
    storm.succeeds("activate", "wordcount")
    wait_for(lambda: info()["status"] == "ACTIVE" and info()["emitted"] > emitted, "its spouts emit", START_SECS)

    overrides = json.dumps({"topology.max.spout.pending": 50})
    storm.succeeds("rebalance", "wordcount", "-w", "0", "-n", "2", "-e", "count_bolt=1", "-t", overrides)
    wait_for(lambda: base().status == "ACTIVE" and base().conf.get("topology.max.spout.pending") == 50, "its settings")
    assert base().conf["topology.workers"] == 2
    refused = storm.fails("rebalance", "wordcount", "-e", "count_bolt=3")
    assert 'component "count_bolt" of topology "wordcount" can have 1 to 2 executors' in refused

    sparse.succeeds("kill", "-e", "prod", "-n", "wordcount", "--wait", "0")
    wait_for(lambda: topology_id not in world.view.snapshot().storms, "it is gone")
    wait_for(lambda: supervisor.slots[6700].slot.phase is Phase.EMPTY, "the end of its driver", START_SECS)
    assert "NotAliveException(msg:there is no topology with the" in storm.fails("kill", "wordcount")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sparse needs setuptools before 66 for its statistics")
def test_sparse_shows_statistics_from_the_rest_interface(world: World, storm: Storm, sparse: Sparse) -> None:
    world.idle_supervisor("s")
    submit = ("submit", "-e", "prod", "-n", "wordcount", "-j", str(sparse.jar), "-o", "topology.workers=1")
    sparse.succeeds(*submit)
    ((topology_id, _),) = wait_for(lambda: world.view.snapshot().storms, "the topology").items()
    spout = {"kind": "spout", "tasks": 1, "emitted": 12_345, "transferred": 12_345, "acked": 12_344, "failed": 1}
    bolt = {"kind": "bolt", "tasks": 2, "emitted": 6_789, "executed": 12_346, "execute_latency_ms": 0.125}
    counts = {"status": "ACTIVE", "uptime_secs": 60.0, "emitted": 12_345, "acked": 12_344, "failed": 1}
    latency = LatencyInfo(0.125, 0.125, 0.125, 0.125)
    own = StreamCounts("default", emitted=12_345, transferred=12_345, acked=12_344, failed=1)
    words = (
        StreamCounts("default", "word_spout", executed=12_346, execute_ms=0.125),
        StreamCounts("default", emitted=6_789),
    )
    counted = {
        "word_spout": ComponentWindow(emitted=12_345, transferred=12_345, acked=12_344, failed=1, streams=(own,)),
        "count_bolt": ComponentWindow(emitted=6_789, executed=12_346, execute=latency, streams=words),
    }
    windows = pack_windows({ALL_TIME: WindowInfo(ALL_TIME, 60.0, counted)})
    components = {"word_spout": spout, "count_bolt": bolt}
    world.beat(world.own(topology_id), {**counts, "components": components, "windows": windows})
    seen = sparse.nimbus.view
    wait_for(lambda: topology_id in seen.snapshot().workerbeats, "its driver's counts")

    assert {"wordcount", topology_id, "host-s", "ACTIVE"} <= sparse.cells("stats")
    topology = sparse.cells("stats", "-n", "wordcount")
    assert {topology_id, "Alltime", "word_spout", "count_bolt", "exclaim", "12345", "6789", "0.125"} <= topology
    assert {"word_spout", "12344", "host-s", "6700"} <= sparse.cells("stats", "-n", "wordcount", "-c", "word_spout")
    assert {"word_spout", "12346", "0.125"} <= sparse.cells("stats", "-n", "wordcount", "-c", "count_bolt")
    assert {"host-s"} <= sparse.cells("worker_uptime")
    assert {"host-s", "1(3)"} <= sparse.cells("slot_usage")

    for text in ("first", "second"):
        error = ErrorRecord(component="exclaim", task=1, message=text, time=1.0, host="host-s", port=6700)
        world.state.add_error(topology_id, error)
    errors = json.loads(storm.succeeds("get-errors", "wordcount").splitlines()[-1])
    assert errors == {"Comp-Errors": {"exclaim": "second"}, "Topology Name": "wordcount"}


def test_storms_blobstore_says_that_there_is_none(storm: Storm, tmp_path: Path) -> None:
    storm.succeeds("blobstore", "list")
    (tmp_path / "words").write_text("a b")
    create = storm.fails("blobstore", "create", "words", "-f", str(tmp_path / "words"), "-a", "o::rwa")
    assert "AuthorizationException(msg:the blob 'words' can't be created: this cluster has no blob store" in create
    for command in ("cat", "delete"):
        assert "KeyNotFoundException(msg:there is no blob 'words'; this" in storm.fails("blobstore", command, "words")


def jaas(file: Path, text: str) -> Path:
    file.write_text(text)
    file.chmod(0o600)
    return file


def test_storms_client_logs_in_by_digest_at_a_nimbus_that_other_hosts_can_reach(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = jaas(tmp_path / "token", "0123456789abcdef")
    module = "org.apache.zookeeper.server.auth.DigestLoginModule required"
    password = 'pässword, \\"quoted\\"'
    users = jaas(tmp_path / "server.jaas", f'StormServer {{ {module} user_ann="{password}" user_bob="b"; }};')
    secured = {
        "nimbus.auth.token.file": str(token),
        "nimbus.bind.address": "0.0.0.0",  # what is tested
        "nimbus.thrift.transport": DIGEST,
        "java.security.auth.login.config": str(users),
    }
    nimbus = world.nimbus("a", **secured)
    wait_for(lambda: (leader := nimbus.view.snapshot().leader) and leader.address == nimbus.address, "a leader")

    def storm(name: str, password: str) -> Storm:
        file = jaas(tmp_path / f"{name}.jaas", f'StormClient {{ {module} username="ann" password="{password}"; }};')
        more = (f"storm.thrift.transport: {DIGEST}", f"java.security.auth.login.config: {file}", *ONCE)
        return Storm(nimbus, tmp_path / name, *more)

    caplog.set_level(logging.INFO, "storm_on_spark.cluster.http.connection")
    right = storm("right", password)
    assert "No topologies running" in right.succeeds("list")
    assert "NotAliveException(msg:there is no topology with the name 'words'" in right.fails("kill", "words")
    assert "is that of user 'ann'" in caplog.text
    storm("wrong", "b").fails("list")
    assert "login refused: user or password is wrong (user 'ann')" in caplog.text
    Storm(nimbus, tmp_path / "none", *ONCE).fails("list")
    assert "the client did not log in, and this server needs a login (SASL)" in caplog.text
    assert "pässword" not in caplog.text
