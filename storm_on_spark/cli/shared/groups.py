"""Groups of commands whose help says of each command the whole sentence."""

from __future__ import annotations

from collections.abc import Iterator

import click

_WHOLE = 10_000
"""Characters; by default Click cuts a sentence where the terminal ends."""


class Group(click.Group):
    """A group whose help wraps what it says of its commands, and cuts nothing off."""

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands, each with its sentence."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(command)) for name, command in sorted(self.commands.items())])


def summary(command: click.Command) -> str:
    """Returns what a command does, in a sentence."""
    return command.get_short_help_str(_WHOLE)


def leaves(group: click.Group, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yields the commands in a group and in the groups below, by what is to be typed.

    Args:
        group: has them.
        above: the words that lead to it.
    """
    for name, command in sorted(group.commands.items()):
        words = f"{above} {name}".lstrip()
        if isinstance(command, click.Group):
            yield from leaves(command, words)
        else:
            yield words, command
