"""When a failed record is emitted again, and when it is given up."""

from __future__ import annotations

from dataclasses import dataclass

from storm_on_spark.api.errors import ConfigError

_MOST_DOUBLINGS = 60


@dataclass(frozen=True)
class RetryBackoff:
    """Exponential back-off, as storm-kafka-client's `KafkaSpoutRetryExponentialBackoff`.

    Args:
        initial_delay_ms: milliseconds before the first retry.
        delay_period_ms: milliseconds before the second retry; each later one waits twice as long as the one before.
        max_retries: retries after which a record is given up; None for no limit.
        max_delay_ms: most milliseconds between two retries.

    Raises:
        ConfigError: a number is negative or not whole.

    Example:
        >>> backoff = RetryBackoff(initial_delay_ms=10, delay_period_ms=100, max_retries=4, max_delay_ms=300)
        >>> [backoff.delay_ms(failures) for failures in (1, 2, 3, 4, 5)]
        [10, 100, 200, 300, None]
    """

    initial_delay_ms: int = 0
    delay_period_ms: int = 2
    max_retries: int | None = None
    max_delay_ms: int = 10_000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is None and name == "max_retries":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ConfigError(f"{name} must be a whole number of 0 or more (given {value!r})", key=name)

    def delay_ms(self, failures: int) -> int | None:
        """Returns the milliseconds to wait after that many failures of a record; None to give it up."""
        if self.max_retries is not None and failures > self.max_retries:
            return None
        return self.capped_delay_ms(failures)

    def capped_delay_ms(self, failures: int) -> int:
        """Returns the milliseconds to wait after that many failures, without a limit on retries."""
        if failures <= 1:
            return min(self.initial_delay_ms, self.max_delay_ms)
        return min(self.delay_period_ms << min(failures - 2, _MOST_DOUBLINGS), self.max_delay_ms)
