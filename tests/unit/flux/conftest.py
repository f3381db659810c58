from __future__ import annotations

import sys
from pathlib import Path

import pytest

FILES = Path(__file__).parent / "files"


@pytest.fixture(autouse=True)
def _own_search_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Flux file puts its folder before all others."""
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def files() -> Path:
    return FILES
