"""The progress of a run: on a terminal a table that is redrawn, otherwise plain lines at intervals."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.api.text.printable import one_line, printable
from storm_on_spark.runtime.reports.observer import Lines, Observer

_MOST_ROWS = 20


class Progress:
    """Context manager that shows progress; `say` and `show` replace the last display.

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
        self._lines = Lines()
        self.observer = Observer()

    def __enter__(self) -> Progress:
        if not self._quiet and self._console.is_terminal:
            self._live = Live(self._spinner, console=self._console, refresh_per_second=8, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            # The last table is removed, and the cursor is shown again.
            self._live.stop()
            self._live = None

    def say(self, note: str) -> None:
        """Shows what the command is waiting for, such as the start of Spark."""
        if self._live is not None:
            self._spinner.update(text=Text(printable(note), overflow="ellipsis", no_wrap=True))
            self._live.update(self._spinner)
        elif not self._quiet:
            self._console.print(printable(note), markup=False, soft_wrap=True)

    def tell(self, sentence: str | None) -> None:
        """Prints a sentence that stays."""
        if sentence is not None and not self._quiet:
            self._console.print(printable(sentence), markup=False, soft_wrap=True)

    def show(self, info: TopologyInfo, note: str = "") -> None:
        """Shows the counters, and `note` after them."""
        now = self._clock()
        self.observer.look(now, info)
        if self._live is not None:
            waited_for = "; ".join(filter(None, [note, self.observer.waits_for()]))
            self._spinner.update(text=Text(printable(waited_for) or "running", overflow="ellipsis", no_wrap=True))
            self._live.update(Group(*live_view(info, self.observer), self._spinner))
        elif not self._quiet and (line := self._lines.next(now, info, self.observer, note)) is not None:
            self._console.print(printable(line), markup=False, soft_wrap=True)


def live_view(info: TopologyInfo, observer: Observer) -> list[RenderableType]:
    """Returns a headline and a table of the components, which fit 80 columns."""
    rates = observer.rates()
    latency = info.complete_latency_ms
    headline = (
        f"{info.name}  {info.uptime_secs:,.0f} s  {observer.acked_rate()} acked/s  {info.acked:,} acked  "
        f"{info.failed:,} failed  {info.pending:,} pending"
    )
    if latency is not None:
        headline += f"\ncomplete latency p50 {latency['p50']:,.0f} ms  p99 {latency['p99']:,.0f} ms"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("component", overflow="ellipsis", no_wrap=True, max_width=24)
    for heading in ("a second", "executed", "emitted", "failed", "execute ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    components = list(info.components.values())
    for component in components[:_MOST_ROWS]:
        mean = component.execute_latency_ms
        table.add_row(
            Text(one_line(component.id)),
            f"{rates.components.get(component.id, 0.0):,.0f}",
            f"{component.executed:,}",
            f"{component.emitted:,}",
            f"{component.failed:,}",
            "n/a" if mean is None else f"{mean:.3f}",
        )
    shown: list[RenderableType] = [Text(printable(headline), overflow="fold"), table]
    if len(components) > _MOST_ROWS:
        shown.append(Text(f"and {len(components) - _MOST_ROWS} more components"))
    return shown
