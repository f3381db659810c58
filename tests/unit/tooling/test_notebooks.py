"""The notebooks of Jupyter are those of their sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
GENERATE = [sys.executable, str(ROOT / "tools" / "generate_notebooks.py")]


def test_each_notebook_is_what_its_source_says(tmp_path: Path) -> None:
    subprocess.run([*GENERATE, str(tmp_path)], check=True)
    written = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert written == {file.name: file.read_text() for file in (ROOT / "notebooks").glob("*.ipynb")}, "make docs"
