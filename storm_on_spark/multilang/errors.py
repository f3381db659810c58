"""The error of a child process."""

from __future__ import annotations

from storm_on_spark.api.errors import StormError


class ShellError(StormError):
    """A child process died, hung, or broke the protocol. The message ends with the last lines of its stderr."""
