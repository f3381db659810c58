"""What commands that run until they are told to end share."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def log_to_stderr(debug: bool) -> None:
    """Has everything logged that happens in a daemon."""
    from storm_on_spark.cluster.security.logs import log_safely

    log_safely("%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("storm_on_spark").setLevel(logging.DEBUG if debug else logging.INFO)
    for name in ("httpx", "kazoo", "py4j"):
        logging.getLogger(name).setLevel(logging.WARNING)


@contextmanager
def ended_by_signal() -> Iterator[threading.Event]:
    """Yields what is set when this process is told to end."""
    ended = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        ended.set()

    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
