"""What commands print with `--json` is what the schema says, which is made from the code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import jsonschema
import pytest
from click.testing import CliRunner, Result

from storm_on_spark.api.info import ComponentInfo, TopologyInfo
from storm_on_spark.cli.main import main
from storm_on_spark.cli.reference.schema import schema, schema_of
from storm_on_spark.launch.document import document, to_json

ROOT = Path(__file__).parents[3]
Write = Callable[..., Path]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_schema_is_up_to_date(tmp_path: Path) -> None:
    written = tmp_path / "schema.json"
    subprocess.run([sys.executable, str(ROOT / "tools" / "generate_json_schema.py"), str(written)], check=True)
    assert written.read_text() == (ROOT / "storm_on_spark/cli/output.schema.json").read_text(), "run `make docs`"


def test_every_command_with_json_has_a_schema_that_is_one() -> None:
    assert isinstance(main, click.Group)
    printing = {
        name
        for name, command in main.commands.items()
        for part in (command, *(command.commands.values() if isinstance(command, click.Group) else ()))
        if any("--json" in parameter.opts for parameter in part.params)
    }
    described = set(json.loads(invoke("schema").stdout)["commands"])
    assert described == printing
    shared = schema()["$defs"]
    jsonschema.Draft202012Validator.check_schema({"$defs": shared})
    for name in described:
        own = schema_of(name)
        assert own.pop("$defs") == shared
        jsonschema.Draft202012Validator.check_schema(own)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["explain", "{module}"], 0),
        (["explain", "gone.py"], 2),
        (["compile", "{module}", "--check"], 0),
        (["compile", "gone.py", "--check"], 2),
        (["validate", "{module}"], 0),
        (["validate", "{module}", "-c", "topology.priority=2"], 0),
        (["validate", "{module}", "-c", "topology.workers=0"], 2),
        (["validate", "gone.py"], 2),
        (["config"], 0),
        (["config", "timeout", "--set", "-c", "topology.message.timeout.secs=3"], 0),
        (["config", "no.such.key"], 2),
        (["new", "made"], 0),
        (["new", "."], 2),
        (["new", "--list-examples"], 0),
        (["new", "copy", "--example", "reach"], 0),
        (["migrate", "."], 0),
        (["migrate", "gone"], 2),
        (["run", "gone.py"], 2),
        (["run", "{module}", "--reset-checkpoint"], 2),
        (["list", "--nimbus", "localhost:abc"], 2),
        (["status", "words", "--nimbus", "127.0.0.1:1"], 1),
        (["lag", "words", "--nimbus", "127.0.0.1:1"], 1),
        (["lag", "{module}"], 0),
        (["dev-zookeeper", "--port", "1", "--dir", "{module}/x"], 1),
        (["dev-kafka", "--port", "0", "--topic", "no blank"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_a_command_prints_what_its_schema_says(module: Write, arguments: list[str], code: int) -> None:
    file = module("topology = make()")
    done = invoke(*(argument.replace("{module}", str(file)) for argument in arguments), "--json")
    assert done.exit_code == code, done.output
    jsonschema.validate(json.loads(done.stdout), schema_of(arguments[0]))


def test_a_run_that_came_to_its_end_prints_what_its_schema_says() -> None:
    latency = {"p50": 80.4, "p95": 120.0, "p99": 1200.0}
    components = {"split": ComponentInfo("split", "basic bolt", 2, 20, 90, 90, 20, 0, 0.0123)}
    info = TopologyInfo("words", "COMPLETED", 2.0, 20, 20, 19, 1, 0, latency, components)
    for result in (None, [{"word": "a", "count": float("inf")}], {1: {"b"}}):
        printed = json.loads(to_json(document("words", info, None, result)), parse_constant=pytest.fail)
        jsonschema.validate(printed, schema_of("run"))


def test_the_schema_refuses_what_is_wrong() -> None:
    good = json.loads(to_json(document("words", None, "no such file")))
    for wrong in ({**good, "emitted": "many"}, {k: v for k, v in good.items() if k != "acked"}, {"error": "no"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema_of("run"))
