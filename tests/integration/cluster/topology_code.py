"""A small topology's code, packed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from cluster_records import manifest

from storm_on_spark.cluster.code.checksums import artifacts_of
from storm_on_spark.cluster.code.packing.bundle import pack
from storm_on_spark.cluster.records import CodeManifest

TOPOLOGY = "word-count-1-1700000000"


def packed(folder: Path, size: int) -> Path:
    """Packs a package with `size` bytes that can't be compressed, and returns where."""
    source = folder / "source" / "words"
    source.mkdir(parents=True)
    (source / "__init__.py").write_text("topology = None\n")
    (source / "data.bin").write_bytes(random.Random(size).randbytes(size))
    pack(str(source), folder / "packed", conf={}, plan={})
    shutil.rmtree(source)
    return folder / "packed"


def manifest_of(artifacts: Path, distributor: str, metafile: str) -> CodeManifest:
    """Returns the manifest that a Nimbus would write."""
    return manifest(TOPOLOGY, artifacts=artifacts_of(artifacts), distributor=distributor, metafile=metafile)


def same(left: Path, right: Path) -> bool:
    """Returns whether two folders hold the same files."""
    return {p.name: p.read_bytes() for p in left.iterdir()} == {p.name: p.read_bytes() for p in right.iterdir()}
