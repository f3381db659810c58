"""A scenario, its result, and how one ends."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Skipped(Exception):  # noqa: N818 # it is no error
    """A scenario can't be played here."""


class ScenarioError(Exception):
    """A scenario went differently than the fault explains."""


@dataclass(frozen=True)
class Scenario(Generic[R]):
    """One kind of fault.

    Args:
        name: for the command line.
        title: for the table.
        play: starts what is tested, injects the fault the given number of times, and says what it expects.
    """

    name: str
    title: str
    play: Callable[[R, int], None]


@dataclass
class Injection:
    """One fault that was injected."""

    what: str
    proof: str
    """The proof that it happened."""


@dataclass
class Result:
    """The result of a scenario."""

    scenario: str
    title: str
    problems: list[str] = field(default_factory=list)
    """The problems; empty if the scenario passed."""
    skipped: str | None = None
    """The reason why it was not played."""
    seconds: float = 0.0
    injections: Sequence[Injection] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The name of the scenario in messages."""
        return self.scenario

    @property
    def faults(self) -> list[str]:
        """A line for each injected fault, with the proof."""
        return [f"{each.what} ({each.proof:.300})" for each in self.injections]

    def to_dict(self) -> dict[str, Any]:
        """Returns the result in terms of JSON."""
        return {**asdict(self), "passed": not self.problems and not self.skipped}


def passed(results: Sequence[Result]) -> bool:
    """Whether no oracle found anything; scenarios that can't be played here don't count."""
    return not any(result.problems for result in results)


def verdict(results: Sequence[Result]) -> str:
    """Returns the last cell of the row of a scenario, over all its rounds."""
    if not passed(results):
        return "FAILED"
    return f"not run: {results[0].skipped}" if results[0].skipped else "passed"


@contextmanager
def judging(result: Result, folder: Path) -> Iterator[None]:
    """Takes the time of a scenario, and removes its folder if it passed."""
    started = time.monotonic()
    yield
    result.seconds = time.monotonic() - started
    if not result.problems:
        shutil.rmtree(folder)
