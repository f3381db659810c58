"""What a run shows while it goes on: a live line on a terminal, now and then a plain line otherwise."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner

from storm_on_spark.api.info import TopologyInfo

_RATE_SECS = 3.0
_PLAIN_EVERY_SECS = 5.0


class Progress:
    """Context manager; `say` and `show` replace what is shown.

    Args:
        console: standard error.
        quiet: show nothing.
        clock: monotonic seconds.
    """

    def __init__(self, console: Console, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._quiet = quiet
        self._clock = clock
        self._live: Live | None = None
        self._spinner = Spinner("dots")
        self._last_plain = -_PLAIN_EVERY_SECS
        self._acked: deque[tuple[float, int]] = deque()

    def __enter__(self) -> Progress:
        if not self._quiet and self._console.is_terminal:
            self._live = Live(self._spinner, console=self._console, refresh_per_second=8, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, note: str) -> None:
        """Shows what is being waited for, such as the start of Spark."""
        if self._live is not None:
            self._spinner.update(text=note)
        elif not self._quiet:
            self._console.print(note, markup=False)

    def show(self, info: TopologyInfo, note: str = "") -> None:
        """Shows the counters, and `note` after them."""
        now = self._clock()
        self._acked.append((now, info.acked))
        while len(self._acked) > 2 and now - self._acked[0][0] > _RATE_SECS:
            self._acked.popleft()
        if self._live is not None:
            self._spinner.update(text=self._line(info) + note)
        elif not self._quiet and now - self._last_plain >= _PLAIN_EVERY_SECS:
            self._last_plain = now
            self._console.print(self._line(info) + note, markup=False)

    def _line(self, info: TopologyInfo) -> str:
        (then, before), (now, acked) = self._acked[0], self._acked[-1]
        rate = (acked - before) / (now - then) if now > then else 0.0
        return (
            f"{info.name}  {info.uptime_secs:.0f} s  emitted {info.emitted:,}  acked {info.acked:,}  "
            f"failed {info.failed:,}  pending {info.pending:,}  {rate:,.0f} acked/s"
        )
