"""The messages between a container and the process of a step."""

from __future__ import annotations

import msgspec


class StepOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The first line on the standard input of the process."""

    job: str
    step: str
    execution: int
    definition: str
    parameters: dict[str, str]
    modules: dict[str, str] = {}
    """Name -> SHA-256 of the file, of the job's modules that were uploaded."""
    lease: float
    """Seconds; the process ends itself if it hears nothing from its container for this long."""


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """The process's last message, written to the descriptor on its command line."""

    exit: int
    error: str = ""
    exit_status: str = ""
    """The text that the step's function returned."""


LONGEST_ERROR = 2_000
"""Characters of an error."""
LONGEST_EXIT_STATUS = 200
