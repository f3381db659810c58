"""The short form of `make fuzz-streams`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

import fuzz_streams


def test_a_second_of_mutated_streams() -> None:
    done = fuzz_streams.fuzz(seconds=1, seed=17)
    assert done["streams"] > 20
    assert done["valid streams"] > 0
    assert done["valid jobs"] > 0
