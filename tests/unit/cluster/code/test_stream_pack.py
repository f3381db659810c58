"""A file with a stream as a cluster gets it."""

from __future__ import annotations

from pathlib import Path

from codekit import manifest_of

from storm_on_spark.cluster.code.packing.bundle import pack, unpack
from storm_on_spark.launch.loader import load


def test_a_stream_that_was_packed_loads_elsewhere(tmp_path: Path) -> None:
    file, out = tmp_path / "words.stream", tmp_path / "out"
    file.write_text("trigger | log")
    pack(str(file), out, conf={})
    file.unlink()
    code = unpack(out, manifest_of(out), tmp_path / "run" / "code")
    target = load(code.target)
    assert (target.name, list(target.topology({}).bolts)) == ("words", ["log"])
