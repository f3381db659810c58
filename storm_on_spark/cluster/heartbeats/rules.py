"""What a Nimbus may conclude from silence. No I/O, no clock, no threads.

Heartbeats in Pacemaker are in memory, on servers that may be away, and each writer uses one server at a time. So a
writer's silence has several causes, and only one of them is the writer's own. `RULES` is the table: of the
facts about one writer at one look, the first rule that fits gives the verdict.

Only a writer that is `SILENT` grows old. One that is `UNKNOWN` has age zero after every look: time without
knowledge does not count.

A writer is whatever beats: a topology's driver, called `<topology id>/<supervisor id>-<port>`, or a supervisor.
Supervisors beat at every Pacemaker that they reach, and say which these are. So a driver that hangs differs from
silence that everyone shares, also where it is the only one; and a Pacemaker that is dead differs from one that only
this Nimbus doesn't reach, where drivers may be writing all the while.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum


class Verdict(Enum):
    """The state of a writer."""

    BEATS = "its heartbeat is new"
    SILENT = "it could have been heard, and was not"
    UNKNOWN = "nobody can tell"


@dataclass(frozen=True)
class Facts:
    """What one look says about one writer."""

    heard: bool
    """Its heartbeat differs from the one at the last look."""
    answers: bool
    """Some server has answered."""
    witness: bool
    """Somebody else has been heard lately."""
    hidden: bool
    """It may beat at a server that doesn't answer this Nimbus."""


@dataclass(frozen=True)
class Rule:
    """A row of the table."""

    reason: str
    """The reason of the verdict, for the log and the pages."""
    fits: Callable[[Facts], bool]
    verdict: Verdict


RULES: tuple[Rule, ...] = (
    Rule("its heartbeats arrive", lambda facts: facts.heard, Verdict.BEATS),
    Rule("no Pacemaker answers", lambda facts: not facts.answers, Verdict.UNKNOWN),
    Rule("nobody's heartbeats arrive", lambda facts: not facts.witness, Verdict.UNKNOWN),
    Rule("it may use a Pacemaker that doesn't answer this Nimbus", lambda facts: facts.hidden, Verdict.UNKNOWN),
    Rule("others are heard and it is not", lambda facts: True, Verdict.SILENT),
)
"""The first that fits counts."""


def judge(facts: Facts) -> Rule:
    """Returns the rule that fits.

    Example:
        >>> judge(Facts(heard=False, answers=True, witness=False, hidden=False)).reason
        "nobody's heartbeats arrive"
    """
    return next(rule for rule in RULES if rule.fits(facts))


@dataclass(frozen=True)
class Look:
    """The result of one round of reading.

    Args:
        at: monotonic seconds.
        servers: all Pacemakers that there should be.
        found: those that answered -> writer -> a sign that changes with each of its heartbeats.
        expected: whether any writer should beat.
        reached: server -> supervisor, by its name as a writer -> the servers that it said there it reaches.
    """

    at: float
    servers: frozenset[str]
    found: Mapping[str, Mapping[str, Hashable]]
    expected: bool = True
    reached: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)


class Hearing:
    """The history of what was heard.

    Args:
        window: seconds within which some writer must have been heard to be a witness. Longer than a writer needs
            to turn to another server, and shorter than the silence after which a topology is moved.

    Example:
        >>> hearing = Hearing(window=15)
        >>> servers = frozenset({"p1"})
        >>> for second in range(0, 30, 3):                                      # two writers; b goes silent at once
        ...     hearing.look(Look(second, servers, {"p1": {"a": second, "b": 0}}))
        >>> hearing.judge("a").verdict.name, hearing.judge("b").verdict.name
        ('BEATS', 'SILENT')
        >>> hearing.look(Look(30, servers, {}))                                 # then the server is away
        >>> hearing.judge("a").verdict.name, hearing.unknown()
        ('UNKNOWN', (30, 'no Pacemaker answers'))
    """

    def __init__(self, window: float) -> None:
        self._window = window
        self._at = float("-inf")
        self._servers: frozenset[str] = frozenset()
        #: Server -> writer -> the sign that was read there last, also of a server that is away since.
        self._signs: dict[str, dict[str, Hashable]] = {}
        #: Writer -> where and when it was heard last.
        self._last: dict[str, tuple[str, float]] = {}
        self._now: set[str] = set()
        """The writers that were heard in the last look."""
        self._lately = 0
        """How many writers were heard within the window."""
        #: Server -> when it first failed to answer.
        self._away: dict[str, float] = {}
        #: Supervisor -> the servers that it said it reaches, with its last heartbeat that was heard.
        self._reached: dict[str, frozenset[str]] = {}
        self._hiding: set[str] = set()
        """The servers that don't answer this Nimbus and that drivers may reach."""
        self._unknown: tuple[float, str] | None = None
        self._heard_at: float | None = None

    def look(self, look: Look) -> None:
        """Takes in what was read."""
        self._at, self._servers = look.at, look.servers
        for server in look.servers:
            if server in look.found:
                self._away.pop(server, None)
            else:
                self._away.setdefault(server, look.at)
        for gone in (self._away.keys() | self._signs.keys()) - look.servers:
            self._away.pop(gone, None)
            self._signs.pop(gone, None)
        self._now = set()
        for server, writers in look.found.items():
            before = self._signs.get(server, {})
            heard = {writer for writer, sign in writers.items() if before.get(writer) != sign}
            self._now |= heard
            self._last.update((writer, (server, look.at)) for writer in heard)
            reached = look.reached.get(server, {})
            self._reached.update((writer, reached[writer]) for writer in heard & reached.keys())
            self._signs[server] = dict(writers)
        self._hiding = self._hidden()
        self._lately = sum(look.at - at <= self._window for _, at in self._last.values())
        if self._now:
            self._heard_at = look.at
        self._unknown = self._shared(look)

    def judge(self, writer: str) -> Rule:
        """Returns what the last look says about a writer."""
        return judge(self._facts(writer))

    def unknown(self) -> tuple[float, str] | None:
        """Returns since when all heartbeats are unknown, and why; None if some are known."""
        return self._unknown

    def away(self) -> Mapping[str, float]:
        """Returns the servers that don't answer, and since when."""
        return dict(self._away)

    def where(self, writer: str) -> str | None:
        """Returns the server where a writer was heard last."""
        last = self._last.get(writer)
        return None if last is None else last[0]

    def keep(self, writers: Iterable[str]) -> None:
        """Forgets all writers but these, so that what is remembered stays bounded."""
        wanted = set(writers)
        self._last = {writer: last for writer, last in self._last.items() if writer in wanted}
        self._reached = {writer: reached for writer, reached in self._reached.items() if writer in wanted}

    def _hidden(self) -> set[str]:
        reports = [
            reached for writer, reached in self._reached.items() if self._at - self._last[writer][1] <= self._window
        ]
        return {server for server in self._away if not reports or any(server in reached for reached in reports)}

    def _facts(self, writer: str) -> Facts:
        last = self._last.get(writer)
        own = last is not None and self._at - last[1] <= self._window
        return Facts(
            heard=writer in self._now,
            answers=len(self._away) < len(self._servers),
            witness=self._lately - own > 0,
            hidden=bool(self._hiding),
        )

    def _shared(self, look: Look) -> tuple[float, str] | None:
        if not look.expected:
            return None
        facts = Facts(False, len(self._away) < len(self._servers), self._lately > 0, False)
        rule = judge(facts)
        if rule.verdict is not Verdict.UNKNOWN:
            return None
        since = look.at if self._heard_at is None else self._heard_at
        if not facts.answers:
            since = max(self._away.values(), default=look.at)
        if self._unknown is not None:
            since = min(since, self._unknown[0])
        return since, rule.reason
