"""Makes `stormtest`, what these tests share, importable, and the fixture of those that run a coordinator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_on_spark.runtime import coordinator, spout_host

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def hosts_in_this_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Spout hosts are objects, not processes, and nothing waits for a clock."""
    from hosts import FakeHost

    monkeypatch.setattr(coordinator, "HostProcess", FakeHost)
    monkeypatch.setattr(coordinator, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(spout_host, "_CUT_SECONDS", 0.0)
    monkeypatch.setattr(spout_host, "_CUT_SHARE", 0)
    monkeypatch.setattr(spout_host, "_REPORT_SECONDS", 0.0)
    monkeypatch.setattr(FakeHost, "made", [])
    monkeypatch.setattr(FakeHost, "calls", 5)
    yield
    for host in FakeHost.made:
        host.stop()
