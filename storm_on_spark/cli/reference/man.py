"""`storm-spark man`: the manual page, made from the help of all commands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from storm_on_spark import __version__
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import reporting_errors

_PROGRAM: Final = "storm-spark"


@click.command("man", short_help="Show or install the manual page.")
@click.option("--install", is_flag=True, help="Write it where man looks for it.")
@options.debug
def command(install: bool, debug: bool) -> None:
    """Print the manual page of all commands, for man -l or for your own package."""
    with reporting_errors(debug):
        if not install:
            echo(page())
            return
        path = place(os.environ, Path.home())
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page() + "\n", "utf-8")
        except OSError as error:
            raise SetupError(f"{error.filename or path} can't be written: {error.strerror}") from error
        echo(f"Installed in {path}. Read it: man {_PROGRAM}, or man -l {path}")


def place(environment: Mapping[str, str], home: Path) -> Path:
    """Returns the file in which `man` looks for a user's own page."""
    return Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "man" / "man1" / f"{_PROGRAM}.1"


def page() -> str:
    """Returns the manual page in roff."""
    # Imported here, because the group imports this module when it looks up its commands.
    from storm_on_spark.cli.main import SECTIONS, main

    assert isinstance(main, click.Group)
    lines = [f'.TH STORM-SPARK 1 "" "storm-spark {__version__}" "User Commands"', ".SH NAME"]
    lines.append(rf"{_PROGRAM} \- {_escaped(_first_sentence(main)).rstrip('.')}")
    lines += [".SH SYNOPSIS", rf".B {_PROGRAM}", r"\fICOMMAND\fR [\fIOPTIONS\fR]"]
    for title, commands in SECTIONS.items():
        lines.append(f".SH {_escaped(title.upper())}")
        for name in commands:
            lines += _command(name, main.commands[name])
    lines += [".SH EXIT STATUS", *_paragraphs((main.epilog or "").removeprefix("Exit codes: "))]
    lines += [".SH FILES", ".TP", ".I conf.yaml", "Read if it is beside the topology and no --conf is given."]
    return "\n".join(lines)


def _command(name: str, described: click.Command) -> Iterator[str]:
    context = click.Context(described, info_name=name)
    usage = " ".join(piece for parameter in described.params for piece in parameter.get_usage_pieces(context))
    yield f".SS {_escaped(name)} {_escaped(usage)}".rstrip()
    yield from _paragraphs(described.help or "")
    for parameter in described.params:
        record = parameter.get_help_record(context)
        if record is not None:
            yield ".TP"
            yield rf"\fB{_escaped(record[0])}\fR"
            yield _escaped(record[1]) or r"\&"


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            yield ".PP"
        yield _escaped(" ".join(paragraph.split()))


def _first_sentence(described: click.Command) -> str:
    return " ".join((described.help or "").split("\n\n")[0].split())


def _escaped(text: str) -> str:
    r"""Returns text escaped for roff, so that it contains no requests, escapes or dashes.

    >>> _escaped("--port"), _escaped(".TH"), _escaped("a\\b")
    ('\\-\\-port', '\\&.TH', 'a\\eb')
    """
    safe = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{safe}" if safe.startswith((".", "'")) else safe
