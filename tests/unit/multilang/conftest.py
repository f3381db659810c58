"""What is a program for the tests, not a test; and a look at what each test leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lengths import PATIENCE_SECS

from storm_on_spark.testing.faults.leaks import no_leaks, own_temporary_folder

collect_ignore = ["components"]


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """Fails a test that leaves a child, a thread or a temporary file."""
    (tmp_path / "temporary").mkdir()
    with own_temporary_folder(tmp_path / "temporary"), no_leaks(timeout=PATIENCE_SECS):
        yield
