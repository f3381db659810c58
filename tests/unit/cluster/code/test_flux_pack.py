"""A Flux file as a cluster gets it: with the values of its placeholders, and the modules of its classes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from codekit import manifest_of

from storm_on_spark.cluster.code.packing.archive import read_all
from storm_on_spark.cluster.code.packing.bundle import pack, unpack
from storm_on_spark.cluster.errors import CodeError
from storm_on_spark.flux import FluxError, Substitution, substituting

PARTS = """
import helper_of_packed
from storm_on_spark.api import BaseBasicBolt
from storm_on_spark.testing import ListSpout

class Words(ListSpout):
    pass

class Upper(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.emit([tup["word"].upper()])
"""
WORDS = """
name: ${name}
includes: [{file: rest.yaml}]
spouts: [{id: words, className: packed_parts.Words, parallelism: ${n}, constructorArgs: [[a, é], word]}]
"""
REST = """
bolts: [{id: upper, className: packed_parts.Upper}]
streams: [{from: words, to: upper, grouping: {type: SHUFFLE}}]
"""
LOAD = """
import sys
from storm_on_spark.launch.loader import load
target = load(sys.argv[1])
print(target.name, target.topology(target.conf), sep="\\n")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "helper_of_packed.py").write_text("LIMIT = 3\n")
    (folder / "packed_parts.py").write_text(PARTS)
    (folder / "unrelated.py").write_text("raise ValueError\n")
    (folder / "rest.yaml").write_text(REST)
    (folder / "words.yaml").write_text(WORDS)
    return folder


def test_what_was_packed_loads_elsewhere_without_the_filter(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with substituting(Substitution({"name": "packed", "n": "2"})):
        packed = pack(str(project / "words.yaml"), out, conf={})
    assert (packed.entry, packed.left_out) == ("words.yaml", ())
    assert sorted(read_all(out / "code.zip")) == ["helper_of_packed.py", "packed_parts.py", "words.yaml"]
    assert set(packed.packed) == {"helper_of_packed.py", "packed_parts.py", "words.yaml"}
    code = unpack(out, manifest_of(out), tmp_path / "run" / "code")
    assert code.target == str(code.folder / "words.yaml")
    shutil.rmtree(project)
    command = [sys.executable, "-c", LOAD, code.target]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "packed",
        "spout words (Words, x2) -> (word)",
        "basic_bolt upper (Upper, x1) <- words shuffle",
    ], done.stderr


def test_what_cannot_be_packed(project: Path, tmp_path: Path) -> None:
    with pytest.raises(FluxError, match="--filter FILE"):
        pack(str(project / "words.yaml"), tmp_path / "out", conf={})
    (project / "packed_parts.py").write_text("class Words(\n")
    with pytest.raises(CodeError, match=r"packed_parts\.py"), substituting(Substitution({"name": "packed", "n": "2"})):
        pack(str(project / "words.yaml"), tmp_path / "out", conf={})
