"""`make walk`: the rooms that a tuple passes are all there, and no file is visited often without a reason."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def test_the_walk_shows_every_door_and_says_why_it_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(TOOLS), *sys.path])
    import walk

    steps = walk.walk("storm")
    files = Counter(visit[0].file.partition("/runtime/")[2] for visit in walk.visits(steps))
    doors = {"emit/routing.py", "bolts/collectors.py", "codec/chunk.py", "tracking/acker.py", "spouts/log/writer.py"}
    assert doors <= set(files)
    names = [step.function for step in steps]
    assert names.index("SentenceSpout.next_tuple") < names.index("WordCount.execute") < names.index("BaseRichSpout.ack")
    assert "PendingMessages.following" not in names, "a property is no step"
    often = {file for file, count in files.items() if file and count > 2}
    assert often == set(walk.AGAIN)
