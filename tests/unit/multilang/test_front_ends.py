"""Commands in a topology of streamparse and in a Flux file, as real processes, without Spark."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lengths import PATIENCE_SECS

from storm_on_spark.launch.loader import load
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology

COMPONENTS = Path(__file__).parent / "components"
WORDS = ["the", "cow", "jumped", "over", "the", "moon"]
SINK = """
from storm_on_spark import BaseBasicBolt

class Sink(BaseBasicBolt):
    def __init__(self, path):
        self.path = path

    def execute(self, tup, collector):
        with open(self.path, "a") as file:
            file.write(tup["word"] + "\\n")
"""
STREAMPARSE = """
import os
from streamparse import Bolt, ShellBolt, ShellSpout, Topology

class Sink(Bolt):
    def process(self, tup):
        with open({found!r}, "a") as file:
            file.write(tup.values.word + "\\n")

class Words(Topology):
    words = ShellSpout.spec(command={python!r}, script="pystorm_spout.py", outputs=["word"])
    exclaim = ShellBolt.spec(command="sh", script="exclaim.sh", inputs=[words], outputs=["word"], par=2)
    sink = Sink.spec(inputs=[exclaim])
"""
FLUX = """
name: words
components:
  - {{id: default, className: org.apache.storm.tuple.Fields, constructorArgs: [[word]]}}
spouts:
  - id: words
    className: org.apache.storm.flux.wrappers.spouts.FluxShellSpout
    constructorArgs: [[{python!r}, pystorm_spout.py], [word]]
bolts:
  - id: exclaim
    className: org.apache.storm.flux.wrappers.bolts.FluxShellBolt
    constructorArgs: [[sh, exclaim.sh]]
    configMethods:
      - {{name: setDefaultStream, args: [[word]]}}
      - {{name: addComponentConfig, args: [topology.subprocess.timeout.secs, 60]}}
    parallelism: 2
  - {{id: sink, className: shell_sink.Sink, constructorArgs: [{found!r}]}}
streams:
  - {{from: words, to: exclaim, grouping: {{type: SHUFFLE}}}}
  - {{from: exclaim, to: sink, grouping: {{type: SHUFFLE}}}}
"""


@pytest.fixture(autouse=True)
def _own_imports(nothing_left: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("shell_sink", "shell_words"):
        sys.modules.pop(name, None)


def runs(file: Path, found: Path) -> None:
    """Runs the topology of a file until it has exclaimed every word."""
    target = load(str(file))
    topology = target.topology(target.conf)
    running = InProcessTopology(compile_graph(topology, target.conf), "children")
    deadline = time.monotonic() + PATIENCE_SECS

    def go_on() -> bool:
        assert time.monotonic() < deadline
        return not found.exists() or len(found.read_text().splitlines()) < len(WORDS)

    running.run(go_on)
    assert running.failure is None
    assert sorted(found.read_text().split()) == sorted(f"{word}!" for word in WORDS)


def test_a_topology_of_streamparse_has_commands_in_its_sources(tmp_path: Path) -> None:
    found = tmp_path / "found"
    for name in ("topologies", "src"):
        (tmp_path / name).mkdir()
    (tmp_path / "config.json").write_text('{"topology_specs": "topologies/"}')
    for name in ("pystorm_spout.py", "exclaim.sh"):
        shutil.copy(COMPONENTS / name, tmp_path / "src")
    file = tmp_path / "topologies" / "shell_words.py"
    file.write_text(STREAMPARSE.format(found=str(found), python=sys.executable))
    runs(file, found)


def test_a_flux_file_has_commands_in_its_resources(tmp_path: Path) -> None:
    found = tmp_path / "found"
    shutil.copytree(COMPONENTS, tmp_path / "resources")
    (tmp_path / "shell_sink.py").write_text(SINK)
    file = tmp_path / "words.yaml"
    file.write_text(FLUX.format(found=str(found), python=sys.executable))
    runs(file, found)
