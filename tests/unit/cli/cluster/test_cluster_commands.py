"""The cluster's commands where there is no cluster: their help, their sentences, where they look for one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from storm_on_spark.api.config import KEYS
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cli.client.dev_document import DevRecord
from storm_on_spark.cli.client.dev_record import DevFile, find, path_of
from storm_on_spark.cli.client.submitter import UPLOAD_SHOWN_BYTES, ProgressBar
from storm_on_spark.cli.client.which_cluster import connect, find_cluster, topologys
from storm_on_spark.cli.cluster.watching.stages import stage_of
from storm_on_spark.cli.main import SECTIONS, main
from storm_on_spark.cluster.errors import UnavailableError

ROOT = Path(__file__).parents[4]
ASKING = ("list", "cluster", "nimbuses")
OF_ONE = ("status", "logs", "errors", "lag", "activate", "deactivate", "rebalance", "kill")
DAEMONS = ("nimbus", "supervisor", "dev-zookeeper", "dev")
RECORD = DevRecord(
    pid=7, seeds=("127.0.0.1:1", "127.0.0.1:2"), token_file="/x/token", zookeeper="", folder="/x", started_at=0.0
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder without a cluster in it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "storm-on-spark"


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("command", [*ASKING, *OF_ONE, *DAEMONS, "submit"])
def test_every_command_has_help_json_and_debug(command: str) -> None:
    done = invoke(command, "--help")
    assert done.exit_code == 0
    for option in ("--json", "--debug"):
        assert option in done.stdout
    assert command in invoke("--help").stdout


def test_the_help_shows_whole_sentences() -> None:
    commands = CliRunner().invoke(main, ["--help"], terminal_width=80).stdout.partition("Here:")[2]
    assert "submit" in commands
    assert "..." not in commands


@pytest.mark.slow
def test_help_needs_neither_the_clusters_libraries_nor_spark() -> None:
    code = (
        "import sys\n"
        "for name in ('kazoo', 'msgspec', 'starlette', 'uvicorn', 'httpx', 'pyspark'): sys.modules[name] = None\n"
        "from storm_on_spark.cli.main import main\n"
        "main()\n"
    )
    for arguments in (["--help"], ["dev", "--help"], ["submit", "--help"], ["logs", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
    for arguments in (["list"], ["dev"], ["nimbus"], ["supervisor"], ["dev-zookeeper"], ["submit", "x.py"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr == (
            "Error: this command needs httpx, kazoo, msgspec, starlette, uvicorn, which are not installed: "
            f"pip install '{ROOT}[cluster]'\n"
        )


@pytest.mark.parametrize("command", [("list",), ("kill", "words"), ("logs", "words", "-f")])
def test_without_a_cluster_one_sentence_says_what_to_do(nobody: str, command: tuple[str, ...]) -> None:
    done = invoke(*command, "-c", f"nimbus.seeds=[{nobody}]", "--json")
    assert done.exit_code == 1
    sentence = f"no Nimbus answers at {nobody}. Is a Nimbus running there?"
    assert done.stderr == f"Error: {sentence}\n"
    assert json.loads(done.stdout) == {"error": sentence}


def test_what_is_named_counts_before_what_runs_here(tmp_path: Path) -> None:
    held = DevFile.take()
    held.write(RECORD)
    try:
        here = find_cluster({"topology.workers": 3}, (), None)
        assert here.conf == {"nimbus.seeds": list(RECORD.seeds), "nimbus.auth.token.file": "/x/token"}
        assert "process id 7" in here.hint
        named = find_cluster({}, ("a:1",), tmp_path / "token")
        assert named.conf == {"nimbus.seeds": ["a:1"], "nimbus.auth.token.file": str(tmp_path / "token")}
        configured = find_cluster({"nimbus.thrift.port": 7000, "storm.local.dir": "x"}, (), None)
        assert configured.conf == {"nimbus.thrift.port": 7000}
    finally:
        held.remove()
    nothing = find_cluster({}, (), None)
    assert nothing.conf == {}
    assert nothing.hint.startswith("Start a cluster on this host with `storm-spark dev`")


def test_a_nimbus_that_is_just_starting_is_waited_for_and_one_that_is_not_there_is_not(nobody: str) -> None:
    pauses: list[float] = []
    with pytest.raises(UnavailableError, match="no Nimbus answers at"):
        connect(find_cluster({}, (nobody,), None), pauses.append)
    assert 0.5 < sum(pauses) < 3


def test_only_one_can_be_held_and_others_see_it(state: Path) -> None:
    held = DevFile.take()
    assert path_of() == state / "dev.json"
    assert path_of().stat().st_mode & 0o777 == 0o600
    assert find() == (None, ""), "it is starting"
    held.write(RECORD)
    assert find() == (RECORD, "")
    with pytest.raises(SetupError, match=r"already runs here: it has the process id 7\."):
        DevFile.take(sleep=lambda seconds: None)
    held.remove()
    assert not path_of().exists()
    DevFile.take().remove()


def test_one_that_was_left_behind_is_noticed_and_removed(state: Path) -> None:
    killed = DevFile.take()
    killed.write(RECORD)
    os.close(killed.descriptor)  # as the kernel does
    record, note = find()
    assert record is None
    assert note.startswith("The `storm-spark dev` of ")
    assert note.endswith("has ended.")
    assert not path_of().exists()
    assert find() == (None, "")


def test_what_is_left_behind_does_not_stop_the_next_one() -> None:
    killed = DevFile.take()
    killed.write(RECORD)
    os.close(killed.descriptor)
    following = DevFile.take()
    assert find() == (None, "")
    following.remove()


def test_the_guard_keeps_it_when_its_owner_is_gone() -> None:
    held = DevFile.take()
    held.write(RECORD)
    guards = os.dup(held.descriptor)
    held.leave()
    assert find() == (RECORD, "")
    DevFile(guards, held.path).remove()
    assert find() == (None, "")


def test_a_file_of_nonsense_is_no_cluster(state: Path) -> None:
    held = DevFile.take()
    os.write(held.descriptor, b'{"format":1,"seeds":"no list"}' * 3)
    assert find() == (None, "")
    held.remove()


def test_a_link_in_its_place_is_not_followed(state: Path, tmp_path: Path) -> None:
    state.mkdir()
    (tmp_path / "mine").write_text("mine")
    path_of().symlink_to(tmp_path / "mine")
    assert find() == (None, "")
    with pytest.raises(SetupError, match=r"dev\.json"):
        DevFile.take()
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    ("changes", "active_secs", "name", "is_done"),
    [
        ({"workers": []}, 0, "scheduling", False),
        ({}, 0, "starting", False),
        ({"driverStatus": "ACTIVE"}, 1, "running", False),
        ({"driverStatus": "ACTIVE", "spoutStats": {"emitted": 5, "acked": 0}}, 100, "running", False),
        ({"driverStatus": "ACTIVE", "bolts": [{"executed": 1}]}, 1, "first batch", True),
        (
            {"driverStatus": "ACTIVE", "bolts": [], "spoutStats": {"emitted": 5, "acked": 0}},
            1,
            "first batch",
            True,
        ),
        ({"driverStatus": "ACTIVE"}, 10, "idle", True),
        ({"driverStatus": "INACTIVE"}, 1, "inactive", True),
        ({"driverStatus": "COMPLETED", "workers": []}, 1, "completed", True),
        ({"driverStatus": "FAILED", "failure": "no such file"}, 1, "failed", False),
    ],
)
def test_stages_of_a_submission(changes: dict, active_secs: float, name: str, is_done: bool) -> None:
    page = {
        "driverStatus": None,
        "workers": [{"host": "a", "port": 6700}],
        "schedulerInfo": None,
        "spoutStats": {"emitted": 0, "acked": 0},
        "bolts": [{"executed": 0}],
        "failure": None,
    }
    stage = stage_of({**page, **changes}, active_secs)
    assert (stage.name, stage.is_done) == (name, is_done)
    assert (stage.failure is not None) == (name == "failed")


def test_commands_are_imported_when_they_are_called() -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from storm_on_spark.cli.main import main\n"
        "CliRunner().invoke(main, ['list', '--help'])\n"
        "commands = ('storm_on_spark.cli.local.run', 'storm_on_spark.cli.cluster.changing.kill')\n"
        "names = (*commands, 'kazoo', 'httpx', 'pyspark')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def imported(program: str, *arguments: str, **environment: str) -> set[str]:
    """Returns the modules that a program has imported when it ends."""
    code = f"import atexit, sys\natexit.register(lambda: print(*sys.modules, file=sys.stderr))\n{program}"
    command = [sys.executable, "-c", code, *arguments]
    given = {**os.environ, **environment}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=given)
    return set(done.stderr.split())


def test_the_package_is_imported_without_what_a_topology_may_need() -> None:
    found = imported("import storm_on_spark")
    assert {name for name in found if name.startswith("storm_on_spark")} == {"storm_on_spark"}
    assert not found & {"numpy", "pandas", "pyarrow", "pyspark", "click", "rich"}


@pytest.mark.parametrize("completing", [False, True])
def test_neither_help_nor_completion_imports_a_command(completing: bool) -> None:
    words = {"_STORM_SPARK_COMPLETE": "bash_complete", "COMP_WORDS": "storm-spark ", "COMP_CWORD": "1"}
    program = "from storm_on_spark.cli.main import main\nmain(prog_name='storm-spark')"
    found = imported(program, *([] if completing else ["--help"]), **(words if completing else {}))
    parts = {name.split(".")[1] for name in found if name.startswith("storm_on_spark.")}
    assert parts == {"cli"}
    assert not found & {"numpy", "pandas", "pyarrow", "pyspark", "rich", "yaml"}


def test_the_list_of_commands_says_of_each_what_it_says_itself() -> None:
    listed = {name: short for section in SECTIONS.values() for name, (_, short) in section.items()}
    assert listed == {name: command.get_short_help_str(1_000) for name, command in main.commands.items()}


def test_main_is_a_group_as_any_other() -> None:
    assert isinstance(main, click.Group)
    assert set(main.commands) >= {"run", "submit", "dev"}


def test_a_submitted_topology_takes_the_keys_along_that_are_set_for_it() -> None:
    sent = topologys({name: key.default for name, key in KEYS.items()})
    # Spouts of a topology look for DRPC servers.
    clusters = {name for name, key in KEYS.items() if key.scope == "cluster" and not name.startswith("drpc.")}
    assert clusters == set(KEYS) - set(sent) - {"storm.id"}


@pytest.mark.parametrize(("size", "shown"), [(0, False), (UPLOAD_SHOWN_BYTES, False), (UPLOAD_SHOWN_BYTES + 1, True)])
def test_only_an_upload_that_takes_a_while_shows_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, size: int, shown: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    bar = ProgressBar()
    bar.on_start("a", "b", size)
    bar.on_progress("a", "b", size // 2, size)
    bar.on_completed("a", "b", size)
    told = capsys.readouterr().err
    assert (f"{size // 2:,} of {size:,} bytes" in told) == shown
    assert bool(told) == shown
