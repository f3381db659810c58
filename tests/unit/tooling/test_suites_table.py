"""The table of others' suites in docs/migration.md is what tests/integration/others_programs/suites.yaml says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "migration.md"


def test_the_table_is_the_one_that_the_tests_read(tmp_path: Path) -> None:
    written = tmp_path / "migration.md"
    subprocess.run([sys.executable, ROOT / "tools" / "generate_suites.py", written], check=True)
    assert written.read_text("utf-8") == PAGE.read_text("utf-8"), "out of date: run make docs"
