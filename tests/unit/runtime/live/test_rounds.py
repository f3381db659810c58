"""Rounds on the disk."""

from __future__ import annotations

import json
from pathlib import Path

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.live.rounds import Round, RoundLog, read_rounds

TOKEN = b"token"


def test_rounds_are_read_as_they_were_written(tmp_path: Path) -> None:
    rounds = [Round(7, Offset({3: 120}, 500), saved=False, processes=2), Round(8, Offset({3: 130}, 510), saved=True)]
    log = RoundLog(tmp_path, sync=False)
    log.follow([TOKEN])
    for done in rounds:
        log.append(done)
    log.close()
    assert read_rounds(tmp_path, TOKEN) == rounds


def test_a_round_that_does_not_say_in_how_many_processes_was_executed_in_one(tmp_path: Path) -> None:
    line = json.dumps([7, Offset({3: 120}, 500).to_json(), False]).encode()
    (tmp_path / TOKEN.hex()).write_bytes(line + b"\n")
    assert read_rounds(tmp_path, TOKEN) == [Round(7, Offset({3: 120}, 500), saved=False, processes=1)]
