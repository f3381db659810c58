"""The parser of jobs: steps in a sequence, `a || b`, in a split, `<a & b>`, and parts in brackets, `(a || b)`."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from storm_on_spark.xd.dsl.errors import Code, DslError
from storm_on_spark.xd.dsl.model import Flow, Job, Sequence, Split
from storm_on_spark.xd.dsl.parsing import IN_QUOTES, MAXIMUM_LENGTH, Parser

MOST_STEPS: Final = 100
"""Steps that a job may have."""
_MOST_LEVELS: Final = 20
_NO_TRANSITIONS: Final = (
    "Expected '||' between steps; transitions are not offered: let a script launch the other job by the exit code of "
    "`job launch NAME --wait`"
)


def parse_job(text: str, name: str | None = None) -> Job:
    """Returns what the definition of a job says.

    Args:
        text: the definition.
        name: the job's name; None where the text may give one, as in `nightly = load || report`.

    Raises:
        DslError: the text is no job, or gives another name; with a code and a position.

    Example:
        >>> [module.name for module in parse_job("load || <report & mail> || clean").modules]
        ['load', 'report', 'mail', 'clean']
    """
    if len(text) > MAXIMUM_LENGTH:
        message = f"Expected at most {MAXIMUM_LENGTH} characters, got {len(text)}"
        raise DslError(Code.TOO_LONG, "", 0, message)
    return _JobParser(text).job(name)


class _JobParser(Parser):
    bare: re.Pattern[str] = re.compile(rf"""(?:[^\s|&>'"]|{IN_QUOTES}|['"]|>(?=[^\s|&>]))+""")
    """A `>` at the end of a value closes a split."""
    # No lone quotes between the brackets: what can be read in two ways takes exponential time where no bracket closes.
    _bare_in_brackets: ClassVar[re.Pattern[str]] = re.compile(
        rf"""(?:[^\s|&>()'"]|{IN_QUOTES}|['"]|\((?:[^()\s|&'"]|{IN_QUOTES})*\)|\(|>(?=[^\s|&>]))+"""
    )
    """A `)` without a `(` in the same value closes the part in brackets, too."""

    def job(self, name: str | None) -> Job:
        """See `parse_job`."""
        self._skip()
        if self._at == len(self._text):
            raise self._error(Code.EMPTY, "Expected a job, got an empty text")
        name = self._name(name, "job")
        flow = self._sequence(name, set(), 0)
        if self._at < len(self._text):
            raise self._error(Code.UNEXPECTED_TEXT, f"Expected the end or '||', got {self._text[self._at]!r}")
        return Job(flow, name)

    def _sequence(self, job: str | None, labels: set[str], level: int) -> Flow:
        parts: list[Flow] = []
        while True:
            self._skip()
            part = self._part(job, labels, level)
            parts += part.parts if isinstance(part, Sequence) else (part,)
            self._skip()
            if not self._peek("||"):
                break
            self._at += 2
        if self._peek("|"):
            raise self._error(Code.UNEXPECTED_TEXT, _NO_TRANSITIONS)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _part(self, job: str | None, labels: set[str], level: int) -> Flow:
        if not self._peek("<") and not self._peek("("):
            return self._step(job, labels)
        if level == _MOST_LEVELS:
            raise self._error(Code.TOO_LONG, f"Expected at most {_MOST_LEVELS} splits and brackets inside each other")
        if self._peek("<"):
            return self._split(job, labels, level + 1)
        outer, self.bare = self.bare, self._bare_in_brackets
        self._at += 1
        flow = self._sequence(job, labels, level + 1)
        if not self._peek(")"):
            raise self._error(Code.UNEXPECTED_TEXT, "Expected '||', or ')' at the end of the part in brackets")
        self._at += 1
        self.bare = outer
        return flow

    def _split(self, job: str | None, labels: set[str], level: int) -> Flow:
        branches: list[Flow] = []
        while True:
            self._at += 1
            branches.append(self._sequence(job, labels, level))
            if not self._peek("&"):
                break
        if not self._peek(">"):
            raise self._error(Code.UNEXPECTED_TEXT, "Expected '&', or '>' at the end of the split")
        self._at += 1
        return branches[0] if len(branches) == 1 else Split(tuple(branches))

    def _step(self, job: str | None, labels: set[str]) -> Flow:
        if len(labels) == MOST_STEPS:
            raise self._error(Code.TOO_LONG, f"Expected at most {MOST_STEPS} steps")
        return self._own_module(job, labels, "job")
