"""A running topology in a notebook's cell."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.api.text import html
from storm_on_spark.api.text.charts import sparkline
from storm_on_spark.api.text.printable import printable
from storm_on_spark.runtime.reports.observer import Observer
from storm_on_spark.spark.running.interrupts import interruptible

_EVERY_SECS = 1.0
_POINTS = 120
_LINE_SECS = 5.0


class Watched(Protocol):
    """What is needed of a `TopologyQuery`, which shows itself by this module."""

    message_timeout_secs: float
    resumed_batch: int | None

    @property
    def isActive(self) -> bool:  # noqa: N802 # Spark's name
        """Whether it runs."""

    def status_info(self) -> TopologyInfo:
        """Returns status and counters as of now."""

    def wait_until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Waits until the condition holds, the topology ends, or the time is over."""

    def stop(self) -> None:
        """Stops it."""


def show_live(query: Watched, seconds: float | None = None) -> TopologyInfo:
    """Shows a topology until it ends; see `TopologyQuery.live`."""
    observer = Observer(query.message_timeout_secs, query.resumed_batch, "its checkpoint")
    acked: deque[float] = deque(maxlen=_POINTS)
    show = _shown_in_place() or _Lines().show
    until = None if seconds is None else time.monotonic() + seconds

    def redraw() -> TopologyInfo:
        info = query.status_info()
        observer.look(time.monotonic(), info)
        acked.append(observer.rates().acked)
        show(info, observer, list(acked))
        return info

    try:
        with interruptible():
            while query.isActive and (until is None or time.monotonic() < until):
                redraw()
                query.wait_until(lambda: False, _EVERY_SECS)
    except KeyboardInterrupt:
        query.stop()
    return redraw()


def picture(info: TopologyInfo, observer: Observer, acked: list[float]) -> str:
    """Returns what is shown at one moment."""
    rates = observer.rates().components if info.status in ("ACTIVE", "INACTIVE") else None
    waits_for = observer.waits_for() if rates is not None else observer.ends(info)
    chart = sparkline(acked, "acked a second", _EVERY_SECS)
    return html.block(*info.html_parts(rates), *([html.line(waits_for)] if waits_for else []), chart)


_Show = Callable[[TopologyInfo, Observer, list[float]], None]


def _shown_in_place() -> _Show | None:
    """Returns what shows a picture in place of the one before; None outside of a notebook."""
    try:
        from IPython import get_ipython
        from IPython.display import HTML, display
    except ImportError:
        return None
    if get_ipython() is None:
        return None
    handle = display(HTML(""), display_id=True)  # type: ignore[no-untyped-call]
    if handle is None:
        return None

    def show(info: TopologyInfo, observer: Observer, acked: list[float]) -> None:
        handle.update(HTML(picture(info, observer, acked)))  # type: ignore[no-untyped-call]

    return show


class _Lines:
    """Shows a plain line now and then."""

    def __init__(self) -> None:
        self._last: tuple[float, str] | None = None

    def show(self, info: TopologyInfo, observer: Observer, acked: list[float]) -> None:
        now = time.monotonic()
        if self._last is None or now - self._last[0] >= _LINE_SECS or self._last[1] != info.status:
            self._last = now, info.status
            counts = f"{info.acked:,} acked, {info.failed:,} failed, {info.pending:,} pending"
            waits_for = observer.waits_for()
            text = f"{info.name}: {info.status}, {counts}" + (f"; {waits_for}" if waits_for else "")
            print(printable(text), file=sys.stderr)  # noqa: T201 # this is what was asked for
