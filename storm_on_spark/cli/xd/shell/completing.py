"""TAB completion in a shell. The admin completes a stream's text and knows which streams exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import click

#: The text after `--definition`, as typed so far, without its quote.
_DEFINITION: Final = re.compile(r"--definition[ =]\s*(?:\"([^\"]*)|'([^']*))$")
#: Commands with a name that the admin knows.
_WITH_NAMES: Final = {
    "stream": ("deploy", "undeploy", "destroy"),
    "job": ("deploy", "undeploy", "destroy", "launch", "status"),
    "module": ("info", "delete"),
}


@dataclass(frozen=True)
class Proposal:
    """A text that replaces the last characters of a line."""

    text: str
    back: int
    """The number of characters that it replaces."""


@dataclass(frozen=True)
class Sources:
    """Look-ups that only the admin can answer; each may take a while, and none raises."""

    definitions: Callable[[str, str], list[str]]
    """Full texts of streams or jobs that begin with a given text."""
    names: Callable[[str], list[str]]
    """Names of the streams, the jobs or the modules."""


def proposals(line: str, root: click.Group, sources: Sources) -> Iterator[Proposal]:
    """Yields possible continuations of a line.

    Args:
        line: up to the cursor.
        root: the commands.
        sources: asked if needed.

    Example:
        >>> root = click.Group("shell", {"stream": click.Group("stream"), "job": click.Group("job")})
        >>> list(proposals("st", root, Sources(lambda kind, start: [], lambda kind: [])))
        [Proposal(text='stream', back=2)]
    """
    if found := _DEFINITION.search(line):
        kind = line.split(maxsplit=1)[0]
        if kind not in ("stream", "job"):
            return
        start = found[1] if found[1] is not None else found[2]
        last = re.split(r"\s", start)[-1]
        for whole in sources.definitions(kind, start):
            yield Proposal(whole[len(start) - len(last) :], len(last))
        return
    words = line.split()
    last = "" if not line or line[-1].isspace() else words.pop()
    command: click.Command = root
    path: list[str] = []
    while isinstance(command, click.Group) and words:
        if words[0] == "help" and command is root:
            words.pop(0)
            continue
        inner = command.commands.get(words.pop(0))
        if inner is None:
            return
        path.append(str(inner.name))
        command = inner
    yield from (Proposal(text, len(last)) for text in _next(command, path, words, last, sources))


def _next(command: click.Command, path: list[str], words: list[str], last: str, sources: Sources) -> Iterator[str]:
    if isinstance(command, click.Group):
        names = [*command.commands, *(["help"] if not path else [])]
        yield from (name for name in sorted(names) if name.startswith(last))
        return
    named = not words or words[-1] == "--name"
    if len(path) == 2 and path[1] in _WITH_NAMES.get(path[0], ()) and named and not last.startswith("-"):
        yield from (name for name in sources.names(path[0]) if name.startswith(last))
    if last.startswith("-") or words:
        options = (
            option
            for each in command.params
            if isinstance(each, click.Option) and not each.hidden
            for option in each.opts
        )
        yield from (option for option in options if option.startswith(last or "--") and option not in words)
