"""A server that takes a connection and says nothing, as one does that hangs or is just starting."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.cluster.zookeeper import ZooKeeperSession, ZooKeeperSettings

SESSION_SECS = 6.0


def test_it_is_asked_again_long_before_a_session_would_expire() -> None:
    with socket.socket() as silent, contextlib.ExitStack() as taken:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        silent.settimeout(30)
        host, port = silent.getsockname()
        session = ZooKeeperSession(
            ZooKeeperSettings(f"{host}:{port}", session_timeout_secs=SESSION_SECS, connection_timeout_secs=4.0)
        )

        def start() -> None:
            with pytest.raises(UnavailableError):
                session.start()

        starting = threading.Thread(target=start)
        starting.start()
        taken.enter_context(silent.accept()[0])
        first = time.monotonic()
        taken.enter_context(silent.accept()[0])
        again = time.monotonic()
        starting.join()
        assert again - first < SESSION_SECS - 1
