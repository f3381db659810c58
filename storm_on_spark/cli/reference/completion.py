"""`storm-spark completion`: completion of commands, options and keys in the shell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click
from click.shell_completion import get_completion_class

from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors

_SHELLS: Final = ("bash", "zsh", "fish")
_PROGRAM: Final = "storm-spark"
_BASH_COMPLETION: Final = Path("/usr/share/bash-completion/bash_completion")


@click.command("completion", short_help="Complete commands in the shell.")
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
@click.option("--install", is_flag=True, help="Write the script where the shell looks for it.")
@options.debug
def command(shell: str | None, install: bool, debug: bool) -> None:
    """Print the script that lets a SHELL complete commands, options and configuration keys.

    The default is the shell that the environment variable SHELL names.
    """
    with reporting_errors(debug):
        shell = shell or _current()
        if not install:
            echo(script(shell))
            return
        path = place(shell, os.environ, Path.home())
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(script(shell) + "\n", "utf-8")
        except OSError as error:
            raise SetupError(f"{error.filename or path} can't be written: {error.strerror}") from error
        echo(f"Installed in {path}. It works in each new {shell}{_condition(shell, path)}.")


def script(shell: str) -> str:
    """Returns the script for a shell."""
    # Imported here, because the group imports this module when it looks up its commands.
    from storm_on_spark.cli.main import main

    kind = get_completion_class(shell)
    assert kind is not None, shell
    return kind(main, {}, _PROGRAM, "_STORM_SPARK_COMPLETE").source()


def place(shell: str, environment: os._Environ[str] | dict[str, str], home: Path) -> Path:
    """Returns the file in which a shell looks for the completion of a program.

    >>> str(place("fish", {}, Path("/home/ann"))), str(place("bash", {"XDG_DATA_HOME": "/data"}, Path("/home/ann")))
    ('/home/ann/.config/fish/completions/storm-spark.fish', '/data/bash-completion/completions/storm-spark')
    """
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return {
        "bash": data / "bash-completion" / "completions" / _PROGRAM,
        "zsh": data / "zsh" / "site-functions" / f"_{_PROGRAM}",
        "fish": config / "fish" / "completions" / f"{_PROGRAM}.fish",
    }[shell]


def _condition(shell: str, path: Path) -> str:
    if shell == "zsh":
        return f", if ~/.zshrc has this line above compinit: fpath=({path.parent} $fpath)"
    if shell == "bash" and not _BASH_COMPLETION.exists():
        return f", if the package bash-completion is installed or ~/.bashrc has this line: source {path}"
    return ""


def _current() -> str:
    name = Path(os.environ.get("SHELL", "")).name
    if name not in _SHELLS:
        raise ConfigError(
            f"the environment variable SHELL names {name or 'no shell'}; name one of {', '.join(_SHELLS)}"
        )
    return name
