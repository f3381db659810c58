"""Every command that asks an admin, with names and values that are none: a sentence, an exit code, and nothing done."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from storm_on_spark.cli.main import main
from storm_on_spark.cluster.http.server import HttpServer, listen
from tests.unit.xd.rest_server import Admin

BAD = {
    "empty": "",
    "a path": "../../etc/passwd",
    "two words": "a b",
    "control characters": "a\x07\n\x1b[31m",
    "an unfinished quote": "'time | log",
    "long": "x" * 100_000,
    "not ASCII": "Zähler",
    "SQL": "a'; drop table streams; --",
}


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from leaves(command, (*path, name))
            elif command is not None and any(parameter.name == "admin" for parameter in command.params):
                yield (*path, name), command


COMMANDS = dict(leaves(main))


def filled(command: click.Command, value: str) -> list[str]:
    """Returns arguments in which all that a command needs is `value`, and one more if it needs nothing."""
    found: list[str] = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            found.append(value)
        elif parameter.required:
            found += [max(parameter.opts, key=len), value]
    return found or [value]


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Admin, str]]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        # No test sees the modules of who runs it.
        monkeypatch.setenv("STORM_SPARK_XD_HOME", str(tmp_path_factory.mktemp("home")))
        found, listener = Admin(), listen("127.0.0.1", 0)
        with HttpServer(found.app, listener):
            yield found, f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_there_are_commands() -> None:
    groups = {path[0] for path in COMMANDS}
    assert {"stream", "job", "module", "runtime", "counter"} <= groups
    assert len(COMMANDS) > 30


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_bad_input_is_refused_in_a_sentence_and_changes_nothing(
    admin: tuple[Admin, str], path: tuple[str, ...], value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, url = admin
    monkeypatch.chdir(tmp_path)
    before = copy.deepcopy(there.definitions.texts)
    done = CliRunner().invoke(main, [*path, "--admin", url, *filled(COMMANDS[path], value)])
    assert done.exit_code in (1, 2), done.output[-500:]
    assert isinstance(done.exception, SystemExit), done.exception
    assert any(line.startswith("Error: ") for line in done.stderr.splitlines()), done.stderr[-500:]
    assert len(done.stderr) < 3_000, "the input is not repeated in full"
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
    assert there.definitions.texts == before
    assert not list(tmp_path.iterdir())
