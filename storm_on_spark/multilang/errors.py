"""The errors of child processes."""

from __future__ import annotations

from typing import Final

from storm_on_spark.api.errors import StormError, UnusableError

MOST_USELESS: Final = 3
"""Children of a component that die one after the other without having done anything, before the topology ends."""


class ShellError(StormError):
    """A child process died, hung, or broke the protocol. The message ends with the last lines of its stderr."""


class UselessChildError(ShellError, UnusableError):
    """The children of a component die one after the other, and none of them has done anything."""

    def __init__(self, last: ShellError) -> None:
        super().__init__(f"{MOST_USELESS} times in a row it has ended without having done anything; the last: {last}")
