"""The short form of `make fuzz`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

import fuzz_pacemaker


def test_a_second_of_mutated_messages() -> None:
    done = fuzz_pacemaker.fuzz(seconds=2, seed=16)
    assert done["payloads"] > 20
    assert done["closed"] > 5
