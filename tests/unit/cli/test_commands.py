"""Exit codes and output of commands that need no Spark, and of `run` where it ends before Spark starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from storm_on_spark import __version__
from storm_on_spark.api.config import KEYS
from storm_on_spark.cli.main import main
from storm_on_spark.spark.checkpoint.directory import VERSION

Write = Callable[..., Path]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_version_and_help() -> None:
    assert invoke("--version").output == f"storm-spark, version {__version__}\n"
    done = invoke("--help")
    assert done.exit_code == 0
    assert all(name in done.output for name in ("run", "explain", "validate", "config", "new", "Exit codes"))


def test_no_help_of_a_group_cuts_a_sentence_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        words = waiting.pop()
        command: click.Command = main
        for word in words:
            assert isinstance(command, click.Group)
            command = command.commands[word]
        if isinstance(command, click.Group):
            listed = invoke(*words, "--help").output.replace("[ARGS]...", "")
            assert "..." not in listed, words
            waiting += [(*words, name) for name in command.commands]


@pytest.mark.parametrize("command", ["run", "explain", "validate"])
@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        ("", [], "has neither a topology nor"),
        ("topology = make()", ["-c", "topology.debugg=true"], 'Did you mean "topology.debug"?'),
        ("topology = make()", ["-c", "topology.workers=two"], "topology.workers must be an int"),
        ("topology = make()", ["--conf", "gone.yaml"], "gone.yaml can't be read"),
        ("topology = TopologyBuilder().create_topology()", [], "spout"),
        ("def build(conf): return conf['x']", [], "KeyError: 'x'"),
    ],
)
def test_what_cannot_run_is_one_sentence_and_exit_code_2(
    module: Write, command: str, code: str, options: list[str], message: str
) -> None:
    done = invoke(command, module(code), *options)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    sentence, *trace = done.stderr.splitlines()
    assert sentence.startswith("Error: ")
    assert message in sentence
    # What the user's own code raised comes with the line that raised it, and with nothing of ours.
    assert bool(trace) == ("KeyError" in message), trace
    assert "storm_on_spark" not in "".join(trace)
    assert "KeyError" not in message or "def build(conf): return conf['x']" in trace[2]


def test_a_syntax_error_comes_with_its_line(module: Write) -> None:
    done = invoke("validate", module("def build(conf:\n    return 1"))
    assert done.exit_code == 2
    assert "def build(conf:" in done.stderr
    assert done.stderr.count("File ") == 1


def test_debug_shows_the_traceback(module: Write) -> None:
    done = invoke("validate", module("def build(conf): return conf['x']"), "--debug")
    assert done.exit_code == 2
    assert "Traceback" in done.stderr


def test_run_with_json_prints_one_document_for_what_cannot_run(module: Write) -> None:
    done = invoke("run", module("topology = 3\nprint('noise')"), "--json")
    assert done.exit_code == 2
    document = json.loads(done.stdout)
    assert document["topology"] == "user-topology"
    assert "not a Topology" in document["error"]
    assert document["emitted"] == 0
    assert document["components"] == {}


def test_validate(module: Write) -> None:
    done = invoke("validate", module("topology = make()"))
    assert (done.exit_code, done.stdout) == (
        0,
        f"{Path.cwd() / 'user_topology.py'} is valid: 1 spout, 1 bolt\n",
    )


def test_validate_with_json(module: Write) -> None:
    file = module("topology = make()")
    assert json.loads(invoke("validate", file, "--json").stdout) == {
        "valid": True,
        "problems": [],
        "warnings": [],
        "spouts": 1,
        "bolts": 1,
    }
    done = invoke("validate", file, "--json", "-c", "topology.workers=0", "-c", "topology.debug=3")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["valid"], len(document["problems"])) == (2, False, 2)


def test_explain_in_its_forms(module: Write) -> None:
    file = module("topology = make()")
    assert "numbers" in invoke("explain", file).stdout
    assert json.loads(invoke("explain", file, "--json").stdout)
    assert invoke("explain", file, "--mermaid").stdout.startswith(("graph", "flowchart"))


WIDE = """
from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, TopologyBuilder

class Numbers(BaseRichSpout):
    def next_tuple(self): pass
    def declare_output_fields(self, declarer): declarer.declare(Fields("number"))

class Show(BaseBasicBolt):
    stateless = False
    def execute(self, tup, collector): pass

def make():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("show", Show(), 3).shuffle_grouping("numbers")
    return builder.create_topology()
"""


def explained(*given: object) -> dict[str, Any]:
    done = invoke("explain", *given, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_explain_shows_what_run_would_start(module: Write, tmp_path: Path) -> None:
    file = module("topology = make()", head=WIDE)
    live = explained(file, "--master", "local[2]")
    assert (live["partitions"], live["live"].partition(",")[0]) == (1, "all tasks of bolts and acker")
    elsewhere = explained(file, "--master", "spark://host:7077")
    assert elsewhere["live"] == "nothing: executors of spark://host:7077 may be on other machines than the spouts"
    wide = explained(file, "--master", "local[2]", "-c", "topology.profile=throughput")
    assert (wide["partitions"], len(wide["operators"]), wide["exchanges"]) == (2, 3, 2)
    latency = explained(file, "--master", "local[2]", "-c", "topology.profile=latency")
    assert (latency["partitions"], len(latency["operators"]), latency["exchanges"]) == (1, 1, 0)
    assert "1 operator, 0 exchanges, 1 partition" in invoke("explain", file, "-c", "topology.profile=latency").stdout
    # The number of partitions is fixed by the first start.
    (tmp_path / "checkpoint" / "storm").mkdir(parents=True)
    manifest = {"version": VERSION, "name": "x", "storm_id": "x-1", "partitions": 7, "fingerprint": {}}
    (tmp_path / "checkpoint" / "storm" / "manifest.json").write_text(json.dumps(manifest))
    again = explained(file, "-c", f"topology.checkpoint.dir={tmp_path / 'checkpoint'}")
    assert again["partitions"] == 7


def test_explain_says_what_only_a_cluster_knows(module: Write) -> None:
    file = module("topology = make()")
    done = invoke("explain", file, "--master", "spark://nowhere:7077")
    assert "The number of cores of spark://nowhere:7077 is" in done.stderr
    for settled in (("-c", "topology.partitions=2"), ("-c", "spark.default.parallelism=4")):
        assert invoke("explain", file, "--master", "spark://nowhere:7077", *settled).stderr == ""


def test_config_lists_every_key() -> None:
    lines = invoke("config").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == sorted(KEYS)
    assert all(len(line.split("\t")) == 6 for line in lines)
    assert {line.split("\t")[0]: line.split("\t")[5] for line in lines} == {
        name: key.scope for name, key in KEYS.items()
    }
    assert {key["key"] for key in json.loads(invoke("config", "--json").stdout)} == set(KEYS)


def test_config_says_why_a_key_of_a_mechanism_that_is_not_here_does_nothing() -> None:
    (line,) = invoke("config", "storm.log.dir").stdout.splitlines()
    assert line.split("\t")[3:] == [
        "accepted",
        "A key of Storm's. No effect: daemons log to standard error: direct it to a file where you start them.",
        "cluster",
    ]
    (line,) = invoke("config", "--set", "-c", "worker.childopts=-Xmx1g").stdout.splitlines()
    assert line.startswith('worker.childopts\t"-Xmx1g"')


@pytest.mark.parametrize("command", [("run",), ("explain", "--spark")])
def test_without_java_a_sentence_says_how_to_get_it(
    module: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr("storm_on_spark.spark.session.jvm.java.WHERE_SYSTEMS_PUT_IT", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    done = invoke(*command, module("topology = make()"))
    assert done.exit_code == 1
    error = done.stderr.splitlines()[-1]
    assert error.startswith("Error: Spark needs Java 17 or 21 and there is no Java here: install one (")
    assert "Traceback" not in done.stderr
