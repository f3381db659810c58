"""Jobs are scripts, not a package: tests import them as a script beside them would."""

from __future__ import annotations

import sys
from pathlib import Path

JOBS = Path(__file__).parents[3] / "jobs"

sys.path[:0] = [str(JOBS), str(JOBS / "storm_starter")]
