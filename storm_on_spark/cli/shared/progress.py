"""The progress of a run: on a terminal a table that is redrawn, otherwise plain lines at intervals."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.api.text.printable import one_line, printable
from storm_on_spark.api.text.wording import milliseconds
from storm_on_spark.runtime.reports.observer import Lines, Observer

_MOST_ROWS = 20
_BEGIN_SECS = 0.2
_BEGINS = "Spark is starting, which saves the state"


class _Screen(Live):
    """A display that its thread refreshes eight times a second while a spinner turns, and no longer once it is a table.

    A table is drawn when there is another one: eight times a second take 2.3 % of a core.
    """

    is_table = False

    def refresh(self) -> None:
        """Draws what is displayed, unless it is a table, which is drawn already."""
        if not self.is_table:
            super().refresh()

    def draw(self, what: RenderableType, *, is_table: bool) -> None:
        """Displays something in place of what was there."""
        self.is_table = False
        self.update(what, refresh=True)
        self.is_table = is_table


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
        self._live: _Screen | None = None
        self._spinner = Spinner("dots")
        self._lines = Lines()
        self.observer = Observer()

    def __enter__(self) -> Progress:
        if not self._quiet and self._console.is_terminal:
            self._live = _Screen(self._spinner, console=self._console, refresh_per_second=8, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            # The last table is removed, and the cursor is shown again.
            self._live.is_table = False
            self._live.stop()
            self._live = None

    def say(self, note: str) -> None:
        """Shows what the command is waiting for, such as the start of Spark."""
        if self._live is not None:
            self._spinner.update(text=Text(printable(note), overflow="ellipsis", no_wrap=True))
            self._live.draw(self._spinner, is_table=False)
        elif not self._quiet:
            self._console.print(printable(note), markup=False, soft_wrap=True)

    def tell(self, sentence: str | None) -> None:
        """Prints a sentence that stays."""
        if sentence is not None and not self._quiet:
            self._console.print(printable(sentence), markup=False, soft_wrap=True)

    @contextlib.contextmanager
    def beginning(self) -> Iterator[Callable[[Callable[[], TopologyInfo]], None]]:
        """Yields what is called with a topology's info once it begins, and shows that while Spark starts.

        A table is redrawn; otherwise one line says when messages are acked.
        """
        over = threading.Event()
        threads: list[threading.Thread] = []

        def follow(info: Callable[[], TopologyInfo]) -> None:
            said = False
            while not over.wait(_BEGIN_SECS):
                found = info()
                if self._live is not None:
                    self.show(found, _BEGINS)
                elif found.acked and not said:
                    said = True
                    self.say(f"{found.name}: messages are acked already; {_BEGINS}")

        def began(info: Callable[[], TopologyInfo]) -> None:
            threads.append(threading.Thread(target=follow, args=(info,), name="progress", daemon=True))
            threads[0].start()

        try:
            yield began
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def show(self, info: TopologyInfo, note: str = "") -> None:
        """Shows the counters, and `note` after them."""
        now = self._clock()
        self.observer.look(now, info)
        if self._live is not None:
            waited_for = "; ".join(filter(None, [note, self.observer.waits_for()]))
            self._spinner.update(text=Text(printable(waited_for) or "running", overflow="ellipsis", no_wrap=True))
            self._live.draw(Group(*live_view(info, self.observer), self._spinner), is_table=True)
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
        headline += f"\ncomplete latency p50 {milliseconds(latency['p50'])}  p99 {milliseconds(latency['p99'])}"
        headline += f", in {info.mode}" if info.mode else ""
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
