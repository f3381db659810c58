"""A folder to write user modules into; what they add to the import system goes again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

TOPOLOGY = """
from storm_on_spark import BaseRichSpout, BaseBasicBolt, Fields, TopologyBuilder

class Numbers(BaseRichSpout):
    def open(self, conf, context, collector): pass
    def next_tuple(self): pass
    def declare_output_fields(self, declarer): declarer.declare(Fields("number"))

class Show(BaseBasicBolt):
    def execute(self, tup, collector): pass

def make():
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("show", Show()).shuffle_grouping("numbers")
    return builder.create_topology()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Returns a function that writes a module: `TOPOLOGY` and then `code`."""
    monkeypatch.chdir(tmp_path)
    known, path = set(sys.modules), list(sys.path)

    def write(code: str = "", name: str = "user_topology.py", head: str = TOPOLOGY) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(head + code)
        return file

    yield write
    sys.path[:] = path
    for name in set(sys.modules) - known:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]
