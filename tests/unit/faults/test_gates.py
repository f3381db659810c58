"""A spout that blocks while another process has locked its file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from waiting import eventually

from lab.faults.gates import closed, gate, waiting
from lab.load import ledger

SPOUT = """
import sys
from lab.faults.gates import GatedMessages
from lab.load.topology import Load
from storm_on_spark.testing import SpoutTester

tester = SpoutTester(GatedMessages(Load(100, 0.01), *sys.argv[1:]))
while not tester.next_tuple():
    pass
"""


def test_a_task_blocks_in_next_tuple_while_its_file_is_locked(tmp_path: Path) -> None:
    (path := gate(tmp_path, 0)), (other := gate(tmp_path, 1))
    with closed(path), closed(other):
        process = subprocess.Popen([sys.executable, "-c", SPOUT, str(tmp_path), str(tmp_path)])
        try:
            eventually(lambda: waiting(path) or process.poll() is not None)
            assert waiting(path) == [process.pid]
            assert waiting(other) == []
            assert ledger.count(tmp_path, ledger.EMITS) == 0
        except BaseException:
            process.kill()
            raise
    assert process.wait(30) == 0
    assert waiting(path) == []
    assert ledger.count(tmp_path, ledger.EMITS) == 1
