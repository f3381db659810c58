"""The request of `storm-spark run`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from storm_on_spark.launch.loader import Target


@dataclass(frozen=True)
class Request:
    """The arguments of `storm-spark run`."""

    target: str
    pairs: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    master: str | None = None
    checkpoint: str | None = None
    reset_checkpoint: bool = False
    name: str | None = None
    seconds: float | None = None
    json: bool = False
    quiet: bool = False
    ui: bool = False
    ui_port: int = 0
    debug: bool = False
    debugger: bool = False
    debugger_port: int | None = None
    loaded: Target | None = None
    """The target, if it is not one that `load` finds."""
