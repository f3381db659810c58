"""What the JVM and Python workers print: bounded, and only marked lines reach the terminal."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from storm_on_spark.runtime.processes.diagnostics.prints import MARK, TIMED
from storm_on_spark.spark.session.logs import OutputPump, new_log_file

LOG_TIME = re.compile(rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ", re.MULTILINE)


def pumped(data: bytes, file: Path, max_bytes: int = 1 << 20) -> list[str]:
    shown: list[str] = []
    pump = OutputPump(io.BytesIO(data), file, shown.append, max_bytes)
    pump.start()
    pump.join(10)
    assert not pump.is_alive()
    return shown


def test_marked_lines_are_shown_and_everything_is_kept(tmp_path: Path) -> None:
    data = b"WARNING: incubator\n" + MARK + b"a bolt says\n" + b"\tat java.lang.X\n" + MARK + b"\xff\n"
    assert pumped(data, tmp_path / "s.out") == ["a bolt says\n", "\ufffd\n"]
    kept = (tmp_path / "s.out").read_bytes()
    assert LOG_TIME.sub(b"", kept) == data.replace(MARK, b"")
    assert [LOG_TIME.match(line) is not None for line in kept.splitlines()] == [False, True, False, True]


def test_lines_that_have_their_time_get_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TIMED, "1")
    data = MARK + b"2026-11-27 13:56:10,123 [count:4] a bolt says\n"
    pumped(data, tmp_path / "s.out")
    assert (tmp_path / "s.out").read_bytes() == data.replace(MARK, b"")


def test_the_mode_of_the_file(tmp_path: Path) -> None:
    pumped(b"", tmp_path / "s.out")
    assert (tmp_path / "s.out").stat().st_mode & 0o777 == 0o600


def test_an_endless_talker_fills_at_most_two_parts(tmp_path: Path) -> None:
    pumped(b"0123456789\n" * 10_000, tmp_path / "s.out", max_bytes=1000)
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert sum(sizes) < 2100


def test_the_pump_goes_on_reading_when_the_terminal_is_gone(tmp_path: Path) -> None:
    def gone(line: str) -> None:
        raise BrokenPipeError

    reader, writer = os.pipe()
    pump = OutputPump(os.fdopen(reader, "rb"), tmp_path / "s.out", gone)
    pump.start()
    with os.fdopen(writer, "wb") as stream:
        stream.write((MARK + b"x" * 1000 + b"\n") * 1000)  # far more than a pipe holds
    pump.join(10)
    assert not pump.is_alive()


def test_the_tail_tells_why_a_jvm_did_not_start(tmp_path: Path) -> None:
    pump = OutputPump(io.BytesIO(b"Invalid maximum heap size: -Xmx1x\n"), tmp_path / "s.out")
    pump.start()
    pump.join(10)
    assert pump.tail == ["Invalid maximum heap size: -Xmx1x"]


def test_only_the_logs_of_the_last_sessions_are_kept(tmp_path: Path) -> None:
    for number in range(30):
        for suffix in (".log", ".log.1", ".out", "-executor-0.log"):
            (tmp_path / f"20260101T0000{number:02}-1{suffix}").touch()
    new = new_log_file(tmp_path)
    assert new.parent == tmp_path
    kept = {path.name.split("-")[0] for path in tmp_path.iterdir()}
    assert kept == {f"20260101T0000{number:02}" for number in range(11, 30)}


def test_a_folder_that_cannot_be_made_is_replaced_by_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert new_log_file(tmp_path / "file" / "logs").parent.parent == tmp_path


@pytest.mark.parametrize("timed", [False, True])
def test_workers_mark_each_line_that_they_print(timed: bool) -> None:
    code = (
        "import sys\nfrom storm_on_spark.runtime.processes.diagnostics.prints import marked_output\n"
        "print('before')\n"
        "with marked_output():\n"
        "    print('one'); print('tw', end=''); print('o\\nthree'); print('err', file=sys.stderr)\n"
        "    sys.stdout.buffer.write(b'raw\\n')\n"
        "    print('unfinished', end='')\n"
        "print('after')"
    )
    environment = {**os.environ, **({TIMED: "1"} if timed else {})}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment)
    moment = rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} " if timed else b""
    marked = b"".join(MARK + moment + line + b"\n" for line in (b"one", b"two", b"three", b"raw", b"unfinished"))
    assert re.fullmatch(b"before\n" + marked + b"after\n", done.stdout)
    assert re.fullmatch(MARK + moment + b"err\n", done.stderr)
