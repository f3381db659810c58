"""When to try again: Storm's `storm.nimbus.retry.*`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from storm_on_spark.api.config import Config, value_of


@dataclass(frozen=True)
class Retry:
    """Pauses between attempts: each twice the last, with some chance, up to a ceiling; in seconds.

    Example:
        >>> list(Retry(times=4, interval=1.0, ceiling=3.0).pauses(lambda: 1.0))
        [1.0, 2.0, 3.0, 3.0]
    """

    times: int = 5
    interval: float = 2.0
    ceiling: float = 60.0

    @classmethod
    def from_conf(cls, conf: Mapping[str, Any]) -> Retry:
        """Returns what the configuration asks for."""
        return cls(
            value_of(conf, Config.STORM_NIMBUS_RETRY_TIMES),
            value_of(conf, Config.STORM_NIMBUS_RETRY_INTERVAL) / 1000,
            value_of(conf, Config.STORM_NIMBUS_RETRY_INTERVAL_CEILING) / 1000,
        )

    def pauses(self, random: Callable[[], float]) -> Iterator[float]:
        """Yields a pause for every attempt after the first.

        Args:
            random: a number from 0 to 1, so that clients that failed together don't come back together.
        """
        for attempt in range(self.times):
            yield min(self.ceiling, self.interval * 2**attempt) * (0.5 + random() / 2)
