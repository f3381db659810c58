"""A shell at a terminal: the prompt, its history, and TAB completion."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory

from storm_on_spark.api.errors import StormError
from storm_on_spark.cli.xd.shell.commands import PROMPT, Shell
from storm_on_spark.cli.xd.shell.completing import Sources, proposals
from storm_on_spark.runtime.processes.ending.at_once import interrupts_raised


def read_lines(shell: Shell, history: Path) -> None:
    """Reads and executes lines until `exit` or the end of the input; Ctrl-C drops a line.

    Args:
        shell: executes them.
        history: the file of earlier lines, which only its owner may read.
    """
    history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    history.touch(mode=0o600)
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(history)),
        # A slow admin does not block typing.
        completer=ThreadedCompleter(ShellCompleter(shell)),
        complete_while_typing=False,
    )
    while not shell.ended:
        with contextlib.suppress(KeyboardInterrupt), interrupts_raised():
            try:
                line = session.prompt(PROMPT)
            except EOFError:
                return
            shell.execute(line)


class ShellCompleter(Completer):
    """Completes lines of a shell."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yields continuations of the line; none if the admin does not answer."""
        sources = Sources(self._definitions, self._names)
        for each in proposals(document.text_before_cursor, self._shell.root, sources):
            yield Completion(each.text, start_position=-each.back)

    def _definitions(self, kind: str, start: str) -> list[str]:
        resource = "complete_job" if kind == "job" else "complete"
        try:
            return list(self._shell.client.ask(resource, query={"start": start}).proposals)
        except StormError:
            return []

    def _names(self, kind: str) -> list[str]:
        try:
            found = self._shell.client.every(f"list_{kind}s")
            return [f"{each.type}:{each.name}" if kind == "module" else each.name for each in found]
        except StormError:
            return []
