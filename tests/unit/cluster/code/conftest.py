"""Makes `codekit`, what these tests share, importable."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from codekit import CodeServer, packed


@pytest.fixture(scope="session")
def packed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed(tmp_path_factory.mktemp("code") / "packed")


@pytest.fixture
def artifacts(tmp_path: Path, packed_once: Path) -> Path:
    """A folder with the artifacts of a small topology."""
    return Path(shutil.copytree(packed_once, tmp_path / "packed"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CodeServer]:
    """A Nimbus as far as code is concerned: it serves `tmp_path / "served"`."""
    with CodeServer(tmp_path / "served") as running:
        yield running
