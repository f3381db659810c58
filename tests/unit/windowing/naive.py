"""Windows as simply as can be: all tuples in one list, gone through at each evaluation, as Storm does it."""

from __future__ import annotations

from typing import Any, NamedTuple

from storm_on_spark.windowing import Count, Duration


class Evaluated(NamedTuple):
    """A window, by the numbers of its tuples."""

    all: list[int]
    new: list[int]
    expired: list[int]
    end: int


class Naive:
    """Storm's rules.

    Args:
        length: of the window.
        slide: of the window.
        streams: how many streams bring their time; 0 for tuples that don't.
        lag: in ms.
    """

    def __init__(self, length: Any, slide: Any, streams: int = 0, lag: int = 0) -> None:
        self.length, self.slide, self.streams, self.lag = length, slide, streams, lag
        #: (time, number) of the tuples, as they came.
        self.held: list[tuple[int, int]] = []
        self.before: set[int] = set()
        self.done: list[Evaluated] = []
        self.gone: list[int] = []
        self.late: list[int] = []
        self.latest: dict[int, int] = {}
        self.watermark = self.next_end = self.last = self.came = self.processed = 0
        self.by_time = isinstance(slide, Duration)

    # --- what happens ----------------------------------------------------------------------------------------------

    def add(self, number: int, now: int) -> None:
        last = now // self.slide.value * self.slide.value if self.by_time else -1
        self.held.append((now + 1 if now == last else now, number))
        self.came += 1
        if not self.by_time and self.came % self.slide.value == 0:
            self.evaluate(now, len(self.held))

    def time(self, now: int) -> None:
        if self.by_time and now % self.slide.value == 0:
            self.evaluate(now, len(self.held))

    def add_event(self, number: int, stream: int, stamp: int) -> None:
        self.latest[stream] = max(stamp, self.latest.get(stream, stamp))
        if stamp < self.watermark:
            self.late.append(number)
        else:
            self.held.append((stamp, number))

    def move_on(self) -> None:
        if len(self.latest) < self.streams:
            return
        watermark = min(self.latest.values()) - self.lag
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        if not self.by_time:
            times, latest = [], 0
            for at, stamp in enumerate([stamp for stamp, _ in self.held if self.last < stamp <= watermark], 1):
                latest = max(latest, stamp)
                if at % self.slide.value == 0:
                    times.append(latest)
            for time in times:
                self.last = time
                self.evaluate(time, self.processed + self.slide.value)
            return
        step = self.slide.value
        while self.next_end <= watermark:
            end = self.next_end
            if self.evaluate(end, sum(stamp <= end for stamp, _ in self.held)):
                self.next_end += step
                continue
            ahead = [stamp for stamp, _ in self.held if end < stamp <= watermark]
            if not ahead:
                break
            self.next_end = -(-min(ahead) // step) * step

    # --- a window --------------------------------------------------------------------------------------------------

    def evaluate(self, reference: int, count: int) -> bool:
        window, expired, stay = [], [], []
        processed = 0
        for stamp, number in self.held:
            there = not self.streams or stamp <= reference
            if isinstance(self.length, Count):
                counts = there and (not self.streams or processed < count)
                if counts and count > self.length.value:
                    count -= 1
                    expired.append(number)
                    continue
                if counts:
                    processed += 1
                    window.append(number)
            elif there:
                if reference - stamp >= self.length.value:
                    expired.append(number)
                    continue
                window.append(number)
            stay.append((stamp, number))
        self.held, self.processed = stay, processed
        self.gone += expired
        if window:
            new = [number for number in window if number not in self.before]
            self.done.append(Evaluated(window, new, expired, reference))
        self.before = set(window)
        return bool(window)
