"""Levels of loggers that change while a topology runs: in this process, and in one that follows a file."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storm_on_spark.api.text.logs import component_logger
from storm_on_spark.runtime.processes.diagnostics.log_levels import VARIABLE, LogLevels, Published, read_levels

CHILD = """
import logging, sys
from storm_on_spark.runtime.processes.diagnostics import log_levels
log_levels.follow()
for line in sys.stdin:
    while logging.getLogger("some.bolt").getEffectiveLevel() != int(line):
        pass
    print(line.strip(), logging.getLogger("other").getEffectiveLevel(), flush=True)
"""


def test_a_process_follows_the_file_and_gets_its_former_levels_back(tmp_path: Path) -> None:
    path = tmp_path / "levels.json"
    published = Published(path)
    with subprocess.Popen(
        [sys.executable, "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, VARIABLE: str(path)},
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for wanted, level in (({"some.bolt": "DEBUG"}, 10), ({"some.bolt": "ERROR"}, 40), ({}, 30)):
            assert published.set(wanted)
            assert not published.set(wanted)
            print(level, file=child.stdin, flush=True)
            assert child.stdout.readline().split() == [str(level), "30"]
        child.stdin.close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_is_written_where_nothing_is_changed(tmp_path: Path) -> None:
    assert not Published(tmp_path / "levels.json").set({})
    assert not list(tmp_path.iterdir())


def test_each_record_is_written_once_whatever_handlers_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    levels = LogLevels()
    root = logging.getLogger()
    kept, root.handlers[:] = list(root.handlers), []
    former = root.level
    try:
        levels.apply({"ROOT": "DEBUG", "written.once": "DEBUG"})
        component_logger("written.once").debug("one of a component")
        logging.getLogger("written.elsewhere").debug("one of another")
        levels.apply({})
        logging.getLogger("written.elsewhere").info("none")
        assert root.level == former
        assert not root.handlers
    finally:
        root.handlers[:] = kept
    said = capsys.readouterr().err
    assert said.count("one of another") == 1
    assert said.count("one of a component") <= 1
    assert "none" not in said


@pytest.mark.parametrize("data", [b"", b"[]", b'{"a": "LOUD"}', b'{"a": 10}', b"\xff"])
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # JSON's own, or ours
        read_levels(data)


def test_a_file_that_others_can_write_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from storm_on_spark.runtime.processes.diagnostics import log_levels

    path = tmp_path / "levels.json"
    path.write_text('{"hostile.logger": "OFF"}')
    path.chmod(0o666)
    monkeypatch.setenv(VARIABLE, str(path))
    monkeypatch.setattr(log_levels, "_follower", None)
    log_levels.look()
    assert logging.getLogger("hostile.logger").level == logging.NOTSET
