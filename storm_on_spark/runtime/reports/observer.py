"""Progress of a topology for people: rates, lines, what it waits for. Pure: infos and times in, text out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from storm_on_spark.api.info import ComponentInfo, TopologyInfo

_WINDOW_SECS = 3.0
_QUIET_SECS = 3.0
"""After this many seconds without progress the line says what the topology waits for."""
_COMPILING_SECS = 1.0
_LINE_EVERY_SECS = 5.0


@dataclass(frozen=True)
class Rates:
    """Rates per second over the last few seconds."""

    acked: float
    components: dict[str, float]
    """Tuples executed, or emitted by spouts, by component id."""


class Observer:
    """Derives rates and reasons for waiting from successive infos of a topology.

    Args:
        message_timeout_secs: of the topology; None if messages don't time out.
        resumed: the micro-batch that was the last before this start; None for a topology that begins.
        checkpoint: where it goes on from.
    """

    def __init__(
        self, message_timeout_secs: float | None = None, resumed: int | None = None, checkpoint: str | None = None
    ) -> None:
        self._timeout = message_timeout_secs
        self._resumed = resumed
        self._checkpoint = checkpoint
        self._seen: deque[tuple[float, TopologyInfo]] = deque()
        self._first_at: float | None = None
        self._changed_at = 0.0
        self._did_something = False

    def look(self, now: float, info: TopologyInfo) -> None:
        """Adds the topology's info at `now`, in monotonic seconds."""
        if self._first_at is None:
            self._first_at = self._changed_at = now
        if not self._seen or _done(info) != _done(self._seen[-1][1]):
            self._changed_at = now
        self._did_something = self._did_something or info.acked + info.failed > 0 or _executed(info) > 0
        self._seen.append((now, info))
        while len(self._seen) > 2 and now - self._seen[1][0] >= _WINDOW_SECS:
            self._seen.popleft()

    def begins(self) -> str | None:
        """Returns the line that is printed once, at the start, or None."""
        if self._resumed is None:
            return None
        return f"went on from {self._checkpoint}, micro-batch {self._resumed + 1}"

    def ends(self, info: TopologyInfo) -> str | None:
        """Returns the line that is printed once, at the end, or None."""
        if info.status == "COMPLETED" and self._resumed is not None and not info.emitted and not self._did_something:
            return "finished before: nothing to do"
        return None

    def waits_for(self) -> str | None:
        """Returns what the topology waits for; None if it makes progress or waits for nothing."""
        if not self._seen or self._first_at is None:
            return None
        now, info = self._seen[-1]
        if not self._did_something:
            if now - self._first_at < _COMPILING_SECS:
                return None
            if info.emitted or info.pending or now - self._first_at < 4 * _QUIET_SECS:
                return "first micro-batch: Spark compiles, some seconds"
            return "spouts have nothing to emit"
        quiet = now - self._changed_at
        if quiet < _QUIET_SECS:
            return None
        if info.pending:
            messages = "1 message waits" if info.pending == 1 else f"{info.pending:,} messages wait"
            if self._timeout is None:
                return f"{messages} for an ack or a fail"
            # A message fails between one and two timeouts after it was emitted, and none was since.
            remaining = max(0.0, 2 * self._timeout - quiet)
            return f"{messages} for {'its' if info.pending == 1 else 'their'} timeout (at most {remaining:.0f} s)"
        return "spouts have nothing to emit" if info.status == "ACTIVE" else None

    def rates(self) -> Rates:
        """Returns the rates per second."""
        if len(self._seen) < 2:
            return Rates(0.0, {})
        (then, before), (now, info) = self._seen[0], self._seen[-1]
        seconds = now - then
        if seconds <= 0:
            return Rates(0.0, {})
        none = ComponentInfo("", "", 0)
        return Rates(
            max(0.0, (info.acked - before.acked) / seconds),
            {
                name: max(0.0, (worked(part) - worked(before.components.get(name, none))) / seconds)
                for name, part in info.components.items()
            },
        )


class Lines:
    """Chooses the plain lines that report progress where no table can be redrawn.

    Args:
        every_secs: a line comes so often; a change of what is waited for is reported at once.
    """

    def __init__(self, every_secs: float = _LINE_EVERY_SECS) -> None:
        self._every_secs = every_secs
        self._last_at: float | None = None
        self._waited_for: str | None = None

    def next(self, now: float, info: TopologyInfo, observer: Observer, note: str = "") -> str | None:
        """Returns the line that is due at `now`, in monotonic seconds; None if none is.

        Args:
            now: the time of the observer's last look.
            info: what the observer saw then.
            observer: knows rates, and what is waited for.
            note: is put before what is waited for.
        """
        waited_for = "; ".join(filter(None, [note, observer.waits_for()])) or None
        news = _kind(waited_for) != _kind(self._waited_for)
        self._waited_for = waited_for
        if not news and self._last_at is not None and now - self._last_at < self._every_secs:
            return None
        self._last_at = now
        line = (
            f"{info.name}  {info.uptime_secs:.0f} s  emitted {info.emitted:,}  acked {info.acked:,}  "
            f"failed {info.failed:,}  pending {info.pending:,}  {observer.rates().acked:,.0f} acked/s"
        )
        return line + (f"  {waited_for}" if waited_for else "")


def worked(component: ComponentInfo) -> int:
    """Returns a component's amount of work: a spout's emits, a bolt's executed tuples."""
    return component.emitted if component.kind.endswith("spout") else component.executed


def _executed(info: TopologyInfo) -> int:
    return sum(component.executed for component in info.components.values())


def _done(info: TopologyInfo) -> tuple[int, ...]:
    return info.emitted, info.acked, info.failed, info.pending, _executed(info)


def _kind(waited_for: str | None) -> str | None:
    """Returns what it is about, without the numbers that change."""
    return None if waited_for is None else "".join(sign for sign in waited_for if not sign.isdigit())
