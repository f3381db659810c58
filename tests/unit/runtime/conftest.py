"""Makes `stormtest`, what these tests share, importable, and the fixture of those that run a coordinator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_on_spark.runtime.batches.coordinator import Coordinator
from storm_on_spark.runtime.batches.rules.planning import BatchPace
from storm_on_spark.testing.simulated import SimulatedSpark

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def hosts_in_this_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Spout hosts are objects, not processes, and nothing waits for a clock."""
    from stormtest import FakeHost

    monkeypatch.setattr(Coordinator, "host_class", FakeHost)
    monkeypatch.setattr(SimulatedSpark, "host_class", FakeHost)
    monkeypatch.setattr(Coordinator, "pace", BatchPace(poll_secs=0.0, idle_poll_secs=0.0))
    monkeypatch.setattr(FakeHost, "made", [])
    monkeypatch.setattr(FakeHost, "calls", 5)
    yield
    for host in FakeHost.made:
        host.stop()
