"""Completion in the shells that there are, and the manual page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from storm_on_spark.cli.main import main


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def completed(shell_line: str, program: Path | None = None) -> list[str]:
    """Returns what the program offers for the last word of a line, as a shell asks it."""
    words = shell_line.split(" ")
    environment = {
        **os.environ,
        "_STORM_SPARK_COMPLETE": "bash_complete",
        "COMP_WORDS": shell_line,
        "COMP_CWORD": str(len(words) - 1),
    }
    command = [str(Path(sys.executable).parent / "storm-spark")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("storm-spark va", ["validate"]),
        ("storm-spark config topology.message.t", ["topology.message.timeout.secs"]),
        ("storm-spark run x.py -c topology.message.t", ["topology.message.timeout.secs="]),
        ("storm-spark new x --example word-count-", ["word-count-columnar"]),
        ("storm-spark run x.py --reset", ["--reset-checkpoint"]),
    ],
)
def test_commands_options_keys_and_examples_are_completed(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_one_command_installs_it(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    done = invoke("completion", "--install")
    assert done.exit_code == 0, done.output
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert str(file) in done.output
    text = file.read_text()
    assert text.strip() == invoke("completion", shell).output.strip()
    assert "_STORM_SPARK_COMPLETE" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n", str(file)], check=True, capture_output=True)


def test_an_unknown_shell_is_told_which_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    done = invoke("completion")
    assert done.exit_code == 2
    assert "tcsh; name one of bash, zsh, fish" in done.stderr


def test_the_manual_page_has_every_command_and_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert invoke("man", "--install").exit_code == 0
    file = tmp_path / "man" / "man1" / "storm-spark.1"
    source = file.read_text()
    assert source.strip() == invoke("man").output.strip()
    assert isinstance(main, click.Group)
    for name, command in main.commands.items():
        assert f".SS {name}".replace("-", r"\-") in source
        for option in (option for parameter in command.params for option in parameter.opts if option.startswith("--")):
            assert option.replace("-", r"\-") in source, (name, option)
    if shutil.which("groff") is None and shutil.which("mandoc") is None:
        return
    checker = ["mandoc", "-T", "lint", "-W", "error"] if shutil.which("mandoc") else ["groff", "-man", "-Tutf8", "-ww"]
    done = subprocess.run([*checker, str(file)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
