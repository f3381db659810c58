"""Real ZooKeeper servers for all tests here; every test has its own root in them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from storm_on_spark.cluster.zookeeper import ZooKeeperServer, ZooKeeperSession, ZooKeeperSettings

sys.path.insert(0, str(Path(__file__).parent))

TICK_SECS = 0.2
SESSION_SECS = 3.0
LONG_SESSION_MILLIS = 30_000
"""Of sessions that no test wants to see expire: a disk that hangs for a second or two doesn't break their line."""

_roots = count()

Connect = Callable[..., ZooKeeperSession]


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeperServer]:
    """One server, which expires sessions quickly that ask for that, and grants others a long time."""
    with ZooKeeperServer(tick=TICK_SECS, config=[f"maxSessionTimeout={LONG_SESSION_MILLIS}"]) as server:
        yield server


@pytest.fixture
def root() -> str:
    """A path of the test's own."""
    return f"/test-{next(_roots)}/storm"


@pytest.fixture
def connect(zookeeper: ZooKeeperServer, root: str) -> Iterator[Connect]:
    """Opens sessions, below the test's root unless the settings say otherwise, and closes them after the test."""
    with contextlib.ExitStack() as sessions:

        def open_session(hosts: str = zookeeper.connect_string, **settings: object) -> ZooKeeperSession:
            defaults = {"hosts": hosts, "root": root, "session_timeout_secs": SESSION_SECS, "retry_interval_secs": 0.2}
            return sessions.enter_context(ZooKeeperSession(ZooKeeperSettings(**{**defaults, **settings})))  # type: ignore[arg-type]

        yield open_session
