"""`storm-spark new`: a project whose paths can be pasted, and copies of the examples."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from storm_on_spark.cli.main import main
from storm_on_spark.cli.projects.examples import examples, find_example

ROOT = Path(__file__).parents[3]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("name", ["my-words", "my proj 2", 'it\'s "mine" $HOME', "-n", "Wörter"])
def test_the_commands_that_it_prints_can_be_pasted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: object
) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("new", "--", name)
    assert done.exit_code == 0, done.output
    run, install, tests = (shlex.split(line) for line in done.output.splitlines()[1:])
    assert run[:2] == ["storm-spark", "run"]
    assert Path(run[2]).resolve() == tmp_path / name / "topology.py"
    assert install[:3] == ["pip", "install", "-r"]
    assert Path(install[3]).resolve() == tmp_path / name / "requirements.txt"
    assert Path(tests[1]).resolve() == tmp_path / name
    made = sorted(path.name for path in (tmp_path / name).iterdir())
    assert made[:4] == [".gitignore", "README.md", "conf.yaml", "explore.ipynb"]
    assert made[4:] == ["requirements.txt", "test_topology.py", "topology.py"]
    # What was pasted is a file to the command line, too.
    assert invoke("validate", run[2]).exit_code == 0


def test_the_topology_bears_the_folders_name(tmp_path: Path, module: object) -> None:
    invoke("new", tmp_path / "my proj 2")
    made = tmp_path / "my proj 2"
    done = invoke("run", made / "topology.py", "--json", "-c", "topology.workers=0")
    assert json.loads(done.stdout)["topology"] == "topology", "its configuration wasn't read"
    # The first thing after the configuration that can fail without Spark.
    (made / "photos").mkdir()
    done = invoke("run", made / "topology.py", "--json", "--reset-checkpoint")
    assert json.loads(done.stdout)["topology"] == "my-proj-2"
    done = invoke("run", made / "topology.py", "--json", "--reset-checkpoint", "--name", "other")
    assert json.loads(done.stdout)["topology"] == "other"


def test_its_conf_yaml_is_found_and_named(tmp_path: Path, module: object, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "words"
    invoke("new", made)
    monkeypatch.chdir(made)
    done = invoke("validate", "topology.py")
    assert done.exit_code == 0
    assert done.stderr == "Configuration: conf.yaml; --conf FILE names another\n"
    (made / "conf.yaml").write_text("# one\n\ntopology.workers: two\n")
    done = invoke("validate", "topology.py")
    assert done.exit_code == 2
    assert "conf.yaml:3: topology.workers must be an int" in done.stderr
    (made / "other.yaml").write_text("topology.workers: 2\n")
    done = invoke("validate", "topology.py", "--conf", "other.yaml")
    assert (done.exit_code, done.stderr) == (0, "")


def test_its_notebook_is_one_and_its_words_are_filled_in(tmp_path: Path) -> None:
    invoke("new", tmp_path / 'say "hi" \\ now')
    made = tmp_path / 'say "hi" \\ now'
    notebook = json.loads((made / "explore.ipynb").read_text())
    assert notebook["nbformat"] == 4
    for file in made.iterdir():
        assert "{name}" not in file.read_text(), file
        assert "{title}" not in file.read_text(), file
    assert "pytest" in (made / "requirements.txt").read_text()
    assert "__pycache__" in (made / ".gitignore").read_text()


def test_every_job_is_an_example_and_is_listed() -> None:
    jobs = {path.stem.replace("_", "-") for path in (ROOT / "jobs").glob("*.py")}
    assert set(examples()) == jobs
    done = invoke("new", "--list-examples")
    assert done.exit_code == 0
    assert {line for line in done.output.splitlines() if not line.startswith(" ")} == jobs
    listed = json.loads(invoke("new", "--list-examples", "--json").stdout)["examples"]
    assert {row["name"] for row in listed} == jobs
    assert all(row["about"] for row in listed)


@pytest.mark.parametrize("name", sorted(examples()))
def test_a_copied_example_is_valid_where_it_is(
    name: str, tmp_path: Path, module: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in examples().values():  # other tests import the originals
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
    done = invoke("new", tmp_path / "copy", "--example", name, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["topology"] == str(tmp_path / "copy" / find_example(name)[0].name)
    copy = tmp_path / "copy"
    files = {path.relative_to(copy).as_posix(): path for path in copy.rglob("*") if path.is_file()}
    assert sorted(document["files"]) == sorted(files)
    for path in files.values():
        named = re.findall(r"(?<![\w./-])(?:\w+/)*\w+\.(?:py|yaml|jsonl|md)\b", path.read_text("utf-8"))
        assert {file for file in named if not (copy / file).is_file()} == set(), path
    done = invoke("validate", document["topology"])
    assert done.exit_code == 0, done.output


def test_the_lines_that_an_example_tells_to_type_are_commands(tmp_path: Path, module: object) -> None:
    for name in examples():
        done = invoke("new", tmp_path / name, "--example", name)
        typed = [shlex.split(line) for line in done.stdout.splitlines() if line.startswith("  ")]
        assert typed[0] == ["cd", str(tmp_path / name)]
        kafka = "kafka_word_count.py" in {path.name for path in (tmp_path / name).iterdir()}
        assert [line[:2] for line in typed if line[0] != "cd"] == [
            *([["storm-spark", "dev-kafka"]] if kafka else []),
            ["storm-spark", "run"],
        ]
        assert done.stdout.count("in another terminal") == kafka
        for line in typed:
            if line[0] != "cd":
                made = main.get_command(click.Context(main), line[1])
                assert made is not None
                made.make_context(line[1], line[2:])  # the options are there


def test_an_unknown_example_is_told_the_nearest(tmp_path: Path) -> None:
    done = invoke("new", tmp_path / "copy", "--example", "word_cuont")
    assert done.exit_code == 2
    assert "did you mean word-count" in done.stderr
    assert not (tmp_path / "copy").exists()
