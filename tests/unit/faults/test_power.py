"""A power loss that is played takes nothing that was forced to the disk, and takes what was not."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from lab.faults.power import Synced, knows_births
from lab.faults.preload import Preload, compiler

ROOT = Path(__file__).parents[3]
WRITES = """
import os, sys
from pathlib import Path
from storm_on_spark.runtime.storage.durable import sync_file_system, sync_folder, write_file
folder = Path(sys.argv[1])
(folder / "all").write_bytes(b"a" * 100)
sync_file_system(folder)
write_file(folder / "forced", b"f" * 100, sync=True)
log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(log, b"1" * 50)
os.fdatasync(log)
sync_folder(folder)
os.write(log, b"2" * 50)
write_file(folder / "not forced", b"n" * 100, sync=False)
"""


def test_only_what_was_forced_to_the_disk_is_sure_to_be_there(tmp_path: Path) -> None:
    if not compiler() or not knows_births(tmp_path):
        pytest.skip("needs a C compiler, and a file system that knows when files were made")
    preload, folder = Preload(tmp_path), tmp_path / "checkpoint"
    seen: set[bytes | None] = set()
    logs: set[bytes] = set()
    for seed in range(20):
        folder.mkdir()
        synced = Synced(tmp_path / "synced", folder)
        environment = {**os.environ, **preload.environment, **synced.environment}
        subprocess.run([sys.executable, "-c", WRITES, str(folder)], cwd=ROOT, env=environment, check=True)
        assert f" 100 0 {folder}/forced.tmp" in (tmp_path / "synced").read_text()
        synced.lose_power(random.Random(seed))
        assert (folder / "all").read_bytes() == b"a" * 100
        assert (folder / "forced").read_bytes() == b"f" * 100
        log = (folder / "log").read_bytes()
        assert log[:50] == b"1" * 50
        logs.add(log)
        free = folder / "not forced"
        seen.add(free.read_bytes() if free.exists() else None)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        (tmp_path / "synced").unlink()
    assert {None, b"n" * 100, b""} <= seen
    assert len(logs) > 3
