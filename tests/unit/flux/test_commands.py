"""`storm-spark flux`, and the other commands with a Flux file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from storm_on_spark.cli.main import main


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_a_dry_run_shows_the_topology(files: Path) -> None:
    done = invoke("flux", files / "source_method.yaml", "--dry-run")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "topology from-method",
        "spout words (Words, x1) -> (word)",
        "basic_bolt bolt (Bolt, x2) <- words shuffle -> (word)",
    ]
    done = invoke("flux", files / "source_method.yaml", "--dry-run", "--no-detail", "--no-splash")
    assert (done.exit_code, done.stdout) == (0, "")


def test_filters(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLUX_TEST_HOME", "/home/flux")
    arguments = ("flux", files / "substitution.yaml", "-d", "-f", files / "values.properties")
    done = invoke(*arguments, "-e")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[:2] == ["topology substituted", "spout words (Words, x3) -> (word)"]
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert "substitution.yaml:5:12: ${ENV-FLUX_TEST_HOME} stands for a variable of the environment" in done.stderr
    assert done.stderr.splitlines()[-1] == " " * 11 + "^"


def test_other_commands_take_a_flux_file(files: Path) -> None:
    done = invoke("validate", files / "diamond.yaml", "--json")
    assert json.loads(done.stdout)["spouts"] == 2
    done = invoke("explain", files / "diamond.yaml", "-c", "topology.partitions=2")
    assert done.exit_code == 0, done.output
    assert "join" in done.stdout
    assert invoke("flux", files / "diamond.yaml", "--explain", "-c", "topology.partitions=2").stdout == done.stdout
    done = invoke("flux", files / "diamond.yaml", "--dry-run", "--json")
    assert json.loads(done.stdout)["valid"] is True


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "gone.yaml"), "there is no file gone.yaml"),
        (("run", "goood.yaml"), "Did you mean good.yaml?"),
        (("run", "wrong.yaml"), "wrong.yaml:1:7: the name of a topology must be a string"),
        (("flux", "wrong.yaml", "--local"), "wrong.yaml:1:7"),
        (("flux", "good.yaml", "--dry-run", "--filter", "gone.properties"), "gone.properties can't be read"),
        (("flux", "good.yaml", "--inactive"), "--inactive goes with --remote"),
        (("flux", "good.yaml", "--remote", "--sleep", "1"), "--sleep goes with --local"),
        (("flux", "good.yaml", "--sleep", "0"), "--sleep"),
        (("flux", "good.yaml", "-d", "-c", "topology.workers=x"), "topology.workers must be an int"),
    ],
)
def test_wrong_usage(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    shutil.copy(files / "storm_names.yaml", tmp_path / "good.yaml")
    (tmp_path / "wrong.yaml").write_text("name: 3\n")
    monkeypatch.chdir(tmp_path)
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert words in done.stderr


def test_a_conf_yaml_is_not_its_own_configuration(files: Path, tmp_path: Path) -> None:
    shutil.copy(files / "storm_names.yaml", tmp_path / "conf.yaml")
    done = invoke("validate", tmp_path / "conf.yaml")
    assert done.exit_code == 0, done.output
    assert "Configuration:" not in done.stderr


def test_remote_asks_a_cluster(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(files / "storm_names.yaml", tmp_path / "good.yaml")
    monkeypatch.chdir(tmp_path)
    done = invoke("flux", "good.yaml", "--remote", "--inactive", "--no-detail", "--nimbus", "127.0.0.1:1", "--json")
    assert done.exit_code == 1
    assert "no Nimbus answers at 127.0.0.1:1" in done.stderr
    assert json.loads(done.stdout).keys() == {"error"}
