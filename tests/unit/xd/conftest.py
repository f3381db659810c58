"""No test of streams sees the modules and counters of who runs it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of streams, which is empty."""
    folder = tmp_path_factory.mktemp("xd")
    monkeypatch.setenv("STORM_SPARK_XD_HOME", str(folder))
    return folder
