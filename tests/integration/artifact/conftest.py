"""The project is compiled, never imported by the test run: what it requires isn't installed."""

from __future__ import annotations

import sys
from pathlib import Path

# `storm-spark dev` in its own process.
sys.path.insert(0, str(Path(__file__).parents[1] / "cluster"))

collect_ignore = ["project"]
