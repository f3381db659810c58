"""The parser of jobs: steps in a sequence, `a || b`, in a split, `<a & b>`, and parts in brackets, `(a || b)`.

The transitions of a step follow it, as in `a | FAILED = b | 'NO *' = $END`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count
from typing import ClassVar, Final

from storm_on_spark.xd.dsl.errors import Code, DslError
from storm_on_spark.xd.dsl.model import Flow, Job, Module, Sequence, Split, Transition
from storm_on_spark.xd.dsl.parsing import IN_QUOTES, MAXIMUM_LENGTH, QUOTED, WORD, Parser

MOST_STEPS: Final = 100
"""Steps that a job may have."""
ENDS: Final = ("$END", "$FAIL", "$STOP")
"""Targets of a transition that are not steps."""
_MOST_LEVELS: Final = 20
_STATUS: Final = re.compile(r"[A-Za-z0-9_.$][A-Za-z0-9_.$-]*")
_END: Final = re.compile(r"\$[A-Za-z0-9_.$-]*")


def parse_job(text: str, name: str | None = None) -> Job:
    """Parses the definition of a job.

    Args:
        text: the definition.
        name: the job's name; None if the text may give one, as in `nightly = load || report`.

    Raises:
        DslError: the text is not a job, or gives another name; with a code and a position.

    Example:
        >>> [module.name for module in parse_job("load || <report & mail> || clean").modules]
        ['load', 'report', 'mail', 'clean']
        >>> parse_job("load | EMPTY = $END || report").flow.parts[0].transitions
        (Transition(status='EMPTY', target='$END'),)
    """
    if len(text) > MAXIMUM_LENGTH:
        message = f"Expected at most {MAXIMUM_LENGTH} characters, got {len(text)}"
        raise DslError(Code.TOO_LONG, "", 0, message)
    return _JobParser(text).job(name)


class _JobParser(Parser):
    bare: re.Pattern[str] = re.compile(rf"""(?:[^\s|&>'"]|{IN_QUOTES}|['"]|>(?=[^\s|&>]))+""")
    """A `>` at the end of a value closes a split."""
    module = re.compile(rf"(?:({WORD}):\s*)?({WORD}(?:\.[A-Za-z0-9_-]+)*)")
    # No lone quotes between the brackets: an ambiguous pattern takes exponential time if no bracket closes.
    _bare_in_brackets: ClassVar[re.Pattern[str]] = re.compile(
        rf"""(?:[^\s|&>()'"]|{IN_QUOTES}|['"]|\((?:[^()\s|&'"]|{IN_QUOTES})*\)|\(|>(?=[^\s|&>]))+"""
    )
    """A `)` without a `(` in the same value closes the part in brackets, too."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._job: str | None = None
        self._labels: set[str] = set()
        #: Label of a step -> its transitions: exit status -> target.
        self._open: dict[str, dict[str, Module]] = {}

    def job(self, name: str | None) -> Job:
        """See `parse_job`."""
        self._skip()
        if self._at == len(self._text):
            raise self._error(Code.EMPTY, "Expected a job, got an empty text")
        self._job = self._name(name, "job")
        parts = self._parts(0)
        if self._at < len(self._text):
            raise self._error(Code.UNEXPECTED_TEXT, f"Expected the end, '||' or '|', got {self._text[self._at]!r}")
        return Job(self._resolved(tuple(parts)), self._job)

    def _resolved(self, parts: tuple[Flow, ...]) -> Flow:
        """Returns a sequence with transitions resolved to labels; asides get labels after all other steps."""
        numbers = {part.label: number for number, part in enumerate(parts) if isinstance(part, Module)}
        asides: dict[str, Module] = {}
        found: list[Flow] = []
        for number, part in enumerate(parts):
            if isinstance(part, Module):
                transitions = [
                    Transition(status, self._target(target, number, numbers, asides))
                    for status, target in self._open.get(part.label, {}).items()
                ]
                found.append(replace(part, transitions=tuple(transitions)))
            elif isinstance(part, Split):
                branches = (branch.parts for branch in part.branches if isinstance(branch, Sequence))
                found.append(Split(tuple(map(self._resolved, branches))))
        if len(found) == 1 and not (isinstance(found[0], Module) and found[0].transitions):
            return found[0]
        return Sequence(tuple(found), tuple(asides.values()))

    def _parts(self, level: int) -> list[Flow]:
        parts: list[Flow] = []
        while True:
            self._skip()
            if self._peek("(") or self._peek("<"):
                if level == _MOST_LEVELS:
                    message = f"Expected at most {_MOST_LEVELS} splits and brackets inside each other"
                    raise self._error(Code.TOO_LONG, message)
                parts += self._bracketed(level + 1) if self._peek("(") else [self._split(level + 1)]
            else:
                parts.append(self._step())
            self._skip()
            if not self._peek("||"):
                return parts
            self._at += 2

    def _bracketed(self, level: int) -> list[Flow]:
        outer, self.bare = self.bare, self._bare_in_brackets
        self._at += 1
        parts = self._parts(level)
        if not self._peek(")"):
            raise self._error(Code.UNEXPECTED_TEXT, "Expected '||', or ')' at the end of the part in brackets")
        self._at += 1
        self.bare = outer
        return parts

    def _split(self, level: int) -> Split:
        branches: list[Flow] = []
        while True:
            self._at += 1
            branches.append(Sequence(tuple(self._parts(level))))
            if not self._peek("&"):
                break
        if not self._peek(">"):
            raise self._error(Code.UNEXPECTED_TEXT, "Expected '&', or '>' at the end of the split")
        self._at += 1
        return Split(tuple(branches))

    def _step(self) -> Module:
        step = self._labelled(self._module(self._job, "job"))
        self._skip()
        found: dict[str, Module] = {}
        while self._peek("|") and not self._peek("||"):
            self._at += 1
            self._skip()
            start = self._at
            status = self._status()
            if status in found:
                message = f"Expected each exit status once after a step, got {status!r:.100} again"
                raise DslError(Code.TRANSITION, self._text, start, message)
            self._skip()
            if not self._peek("="):
                message = f"Expected '=' and a step after the exit status {status!r:.100}; one with spaces needs quotes"
                raise self._error(Code.TRANSITION, message)
            self._at += 1
            self._skip()
            found[status] = self._named_target()
            self._skip()
        if found:
            self._open[step.label] = found
        return step

    def _status(self) -> str:
        quote = self._text[self._at : self._at + 1]
        pattern = QUOTED.get(quote, _STATUS)
        match = pattern.match(self._text, self._at)
        if match and (status := match[0][1:-1].replace(quote * 2, quote) if quote in QUOTED else match[0]):
            self._at = match.end()
            return status
        message = "Expected the exit status of a step, as in | FAILED = clean; '*' needs quotes; or '||' and a step"
        raise self._error(Code.TRANSITION, message)

    def _named_target(self) -> Module:
        start = self._at
        if match := self._take(_END):
            if match[0] not in ENDS:
                message = f"Expected a step, or one of {', '.join(ENDS)}; got {match[0]:.100}"
                raise DslError(Code.TRANSITION, self._text, start, message)
            return Module(match[0], match[0], position=start)
        return self._module(self._job, "job")

    def _target(self, target: Module, number: int, numbers: dict[str, int], asides: dict[str, Module]) -> str:
        """Returns the label of the step that a transition of step `number` leads to, or `$END` and the like.

        A name alone refers to the step of the sequence with that label or name, if there is one. Other steps become
        asides.
        """
        name = target.name
        if name in ENDS:
            return name
        if not target.options and not self._has_label(target):
            if name in numbers and numbers[name] <= number:
                message = f"Expected a step after this one, as no step runs twice; got {name:.100}"
                raise DslError(Code.TRANSITION, self._text, target.position, message)
            if name in numbers:
                return name
            for label, aside in asides.items():
                if name in (label, aside.name):
                    return label
        target = self._labelled(target)
        asides[target.label] = target
        return target.label

    def _has_label(self, step: Module) -> bool:
        return self._text.startswith(":", step.position + len(step.label))

    def _labelled(self, step: Module) -> Module:
        """Returns a step with a unique label: a name that is already used gets a number, as in Spring XD."""
        if len(self._labels) == MOST_STEPS:
            raise DslError(Code.TOO_LONG, self._text, step.position, f"Expected at most {MOST_STEPS} steps")
        label = step.label
        if label in self._labels:
            if self._has_label(step):
                raise self._taken(step, "job")
            label = next(other for number in count(1) if (other := f"{label}{number}") not in self._labels)
        self._labels.add(label)
        return replace(step, label=label)
