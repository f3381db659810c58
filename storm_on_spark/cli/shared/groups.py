"""Groups of commands whose help shows the full sentence of each command."""

from __future__ import annotations

from collections.abc import Iterator

import click

_WHOLE = 10_000
"""Characters; by default Click cuts a sentence at the end of the line."""


class Group(click.Group):
    """A group whose help wraps the sentences of its commands instead of cutting them."""

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands, each with its sentence."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(command)) for name, command in sorted(self.commands.items())])


def summary(command: click.Command) -> str:
    """Returns a sentence that says what a command does."""
    return command.get_short_help_str(_WHOLE)


def leaves(group: click.Group, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yields the commands in a group and its subgroups, each with the words to type.

    Args:
        group: the group.
        above: the words before it.
    """
    for name, command in sorted(group.commands.items()):
        words = f"{above} {name}".lstrip()
        if isinstance(command, click.Group):
            yield from leaves(command, words)
        else:
            yield words, command
