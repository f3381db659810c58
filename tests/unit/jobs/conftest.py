"""Jobs are scripts, not a package: tests import them as a script beside them would."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "jobs"))
