"""Tuples that come too late: they are counted and logged, the first one as a warning."""

from __future__ import annotations

import logging
from typing import Any, Final

from storm_on_spark.api.task.context import TopologyContext

log = logging.getLogger(__name__)

LATE_TUPLE_FIELD: Final = "late_tuple"
"""The field of the stream for late tuples."""
LATE_TUPLES: Final = "late-tuples"
"""The counter of late tuples."""


class LateTuples:
    """What a task says of its late tuples.

    One tuple with a time that is far ahead makes all that follow late, in Storm too. So that nobody has to look for
    the reason, the first late tuple of a task and process is told with both times.

    Args:
        context: of the task.
    """

    def __init__(self, context: TopologyContext) -> None:
        self._component = context.this_component_id
        self._counter = context.register_counter(LATE_TUPLES)
        self._warned = False

    def count(self, number: int = 1) -> None:
        """Counts them."""
        self._counter.inc(number)

    def tell(self, given: Any, time: int, watermark: int) -> None:
        """Logs a late tuple that nobody takes.

        Args:
            given: the tuple, or what there is to say of several.
            time: its time, in ms.
            watermark: the watermark, in ms.
        """
        log.info('"%s": late, and not processed: %.200r', self._component, given)
        if not self._warned:
            self._warned = True
            log.warning(
                '"%s": the time of a tuple, %d, is before the watermark, %d, so it is not processed. Such tuples are '
                "acked, and counted in %s; further ones are logged at level INFO. If all are late, a tuple before them "
                "brought a time that is too far ahead",
                self._component,
                time,
                watermark,
                LATE_TUPLES,
            )
