"""Progress of a topology for people: rates, log lines, reasons for waiting. Pure: infos and times in, text out."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from storm_on_spark.api.info import ComponentAtWork, ComponentInfo, MicroBatchInfo, TopologyInfo

_WINDOW_SECS = 3.0
_QUIET_SECS = 3.0
"""After this many seconds without progress the line says what the topology waits for."""
_AT_FIRST_SECS = 1.0
"""The same before it has done anything. Later, shorter micro-batches aren't mentioned: those of ticks come and go."""
_LOOK_SECS = 0.2
_IDLE_LOOK_SECS = 1.0
_MOST_COMPONENTS = 2
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
        checkpoint: where it continues from.
    """

    def __init__(
        self, message_timeout_secs: float | None = None, resumed: int | None = None, checkpoint: str | None = None
    ) -> None:
        self._timeout = message_timeout_secs
        self._resumed = resumed
        self._checkpoint = checkpoint
        self._seen: deque[tuple[float, TopologyInfo]] = deque()
        #: When a counter changed, and when one did that only what is done with tuples changes.
        self._changed_at = self._worked_at = 0.0
        self._did_something = False

    def look(self, now: float, info: TopologyInfo) -> None:
        """Adds the topology's info at `now`, in monotonic seconds."""
        if not self._seen:
            self._changed_at = self._worked_at = now
        before = self._seen[-1][1] if self._seen else info
        if _worked(info) != _worked(before):
            self._worked_at = self._changed_at = now
        elif (info.emitted, info.pending) != (before.emitted, before.pending):
            self._changed_at = now
        self._did_something = self._did_something or any(_worked(info))
        self._seen.append((now, info))
        while len(self._seen) > 2 and now - self._seen[1][0] >= _WINDOW_SECS:
            self._seen.popleft()

    def pause(self) -> float:
        """Returns how many seconds may pass until the next look: more once a topology does nothing."""
        if not self._seen:
            return _LOOK_SECS
        now, info = self._seen[-1]
        idle = now - self._changed_at >= 2 * _QUIET_SECS and info.micro_batch is None and not info.at_work
        return _IDLE_LOOK_SECS if idle else _LOOK_SECS

    def begins(self) -> str | None:
        """Returns the line that is printed once, at the start, or None."""
        if self._resumed is None:
            return None
        return f"continued from {self._checkpoint}, micro-batch {self._resumed + 1}"

    def ends(self, info: TopologyInfo) -> str | None:
        """Returns the line that is printed once, at the end, or None."""
        if info.status == "COMPLETED" and self._resumed is not None and not info.emitted and not self._did_something:
            return "finished before: nothing to do"
        return None

    def waits_for(self) -> str | None:
        """Returns the reason why the topology waits; None if it makes progress or is idle."""
        if not self._seen:
            return None
        now, info = self._seen[-1]
        batch, idle = info.micro_batch, now - self._worked_at
        if batch is not None:
            if not self._did_something:
                return _in_hand(batch, info) if idle >= _AT_FIRST_SECS else None
            if idle >= _QUIET_SECS and batch.secs >= _AT_FIRST_SECS:
                return _in_hand(batch, info)
        quiet = now - self._changed_at
        if quiet < _QUIET_SECS:
            return None
        if info.at_work:
            return _at_work(info.at_work)
        if info.pending:
            messages = "1 message waits" if info.pending == 1 else f"{info.pending:,} messages wait"
            if self._timeout is None:
                return f"{messages} for an ack or a fail"
            # A message fails between one and two timeouts after it was emitted, and none was since.
            remaining = max(0.0, 2 * self._timeout - quiet)
            return f"{messages} for {'its' if info.pending == 1 else 'their'} timeout (at most {remaining:.0f} s)"
        return "spouts have nothing to emit" if info.status == "ACTIVE" else None

    def acked_rate(self) -> str:
        """Returns the messages acked per second as text: in the last seconds, or since the start if none was there."""
        rate = self.rates().acked
        info = self._seen[-1][1] if self._seen else None
        if not rate and info is not None and info.uptime_secs > 0:
            rate = info.acked / info.uptime_secs
        return rate_text(rate)

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
        every_secs: seconds between lines. A new reason for waiting is reported immediately.
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
            observer: gives the rates and the reason for waiting.
            note: precedes the reason for waiting.
        """
        waited_for = "; ".join(filter(None, [note, observer.waits_for()])) or None
        news = _kind(waited_for) != _kind(self._waited_for)
        self._waited_for = waited_for
        if not news and self._last_at is not None and now - self._last_at < self._every_secs:
            return None
        self._last_at = now
        line = (
            f"{info.name}  {info.uptime_secs:.0f} s  emitted {info.emitted:,}  acked {info.acked:,}  "
            f"failed {info.failed:,}  pending {info.pending:,}  {observer.acked_rate()} acked/s"
        )
        return line + (f"  {waited_for}" if waited_for else "")


def rate_text(rate: float) -> str:
    """Formats a rate with a useful number of digits.

    Example:
        >>> rate_text(1234.5), rate_text(3.456), rate_text(0.02), rate_text(0)
        ('1,234', '3.5', '0.02', '0')
    """
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _in_hand(batch: MicroBatchInfo, info: TopologyInfo) -> str:
    if batch.number is None:
        return f"Spark prepares the {'first' if batch.is_first else 'next'} micro-batch, {batch.secs:.0f} s"
    said = f"{'first micro-batch' if batch.is_first else f'micro-batch {batch.number}'} runs, {batch.secs:.0f} s"
    again = "" if info.repetition is None else str(info.repetition)
    return ": ".join(filter(None, [said, again or _at_work(info.at_work)]))


def _at_work(at_work: Sequence[ComponentAtWork]) -> str:
    """Returns the progress of the components with the most work left."""
    most = sorted(at_work, key=lambda part: part.executed - part.tuples)[:_MOST_COMPONENTS]
    return ", ".join(f"`{part.component}` has executed {part.executed:,} of {part.tuples:,}" for part in most)


def worked(component: ComponentInfo) -> int:
    """Returns a component's amount of work: a spout's emits, a bolt's executed tuples."""
    return component.emitted if component.kind.endswith("spout") else component.executed


def _worked(info: TopologyInfo) -> tuple[int, ...]:
    return info.acked, info.failed, sum(component.executed for component in info.components.values())


def _kind(waited_for: str | None) -> str | None:
    """Returns the reason without its numbers, which change."""
    return None if waited_for is None else re.sub(r"[\d,]", "", waited_for)
