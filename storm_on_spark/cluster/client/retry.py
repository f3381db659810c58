"""When to try again: Storm's `storm.nimbus.retry.*`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from storm_on_spark.cluster.client.settings import ClientSettings


@dataclass(frozen=True)
class Retry:
    """Pauses between attempts: each twice the last, with some chance, up to a ceiling.

    Example:
        >>> list(Retry(times=4, interval_secs=1.0, ceiling_secs=3.0).pauses(lambda: 1.0))
        [1.0, 2.0, 3.0, 3.0]
    """

    times: int = 5
    interval_secs: float = 2.0
    ceiling_secs: float = 60.0

    @classmethod
    def of(cls, settings: ClientSettings) -> Retry:
        """Returns what the configuration asks for."""
        return cls(settings.retry_times, settings.retry_interval_ms / 1000, settings.retry_ceiling_ms / 1000)

    def pauses(self, random: Callable[[], float]) -> Iterator[float]:
        """Yields a pause for every attempt after the first.

        Args:
            random: a number from 0 to 1, so that clients that failed together don't come back together.
        """
        for attempt in range(self.times):
            yield min(self.ceiling_secs, self.interval_secs * 2**attempt) * (0.5 + random() / 2)
