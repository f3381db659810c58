"""`run --debugger` on its own terminal: a real one, by the `pty` module."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from lengths import PATIENCE_SECS

JOB = """
from collections import Counter

from storm_on_spark import BaseBasicBolt, BaseRichBolt, Fields, TopologyBuilder
from storm_on_spark.testing import ListSpout


class Count(BaseBasicBolt):
    def prepare(self, conf, context):
        self.counts = Counter()

    def execute(self, tup, collector):
        STOP
        self.counts[tup["word"]] += 1
        collector.emit([tup["word"], self.counts[tup["word"]]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word", "count"))


class End(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


def build(conf):
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["storm", "spark", "storm"], fields=["word"]))
    builder.set_bolt("count", Count(), 2).fields_grouping("words", "word")
    builder.set_bolt("end", End()).global_grouping("count")
    return builder.create_topology()
"""


class Terminal:
    """A process on a terminal of 80 columns."""

    def __init__(self, *arguments: object, cwd: Path) -> None:
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)}
        environment.pop("PYTHONBREAKPOINT", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "storm_on_spark.cli", *map(str, arguments)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)
        self.said = ""
        self._seen = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def type(self, line: str) -> None:
        os.write(self._ours, line.encode() + b"\n")

    def until(self, pattern: str, seconds: float = PATIENCE_SECS) -> str:
        """Waits until it has said something new; returns what it said up to there."""
        deadline = time.monotonic() + seconds
        while (found := re.search(pattern, self.said[self._seen :])) is None:
            left = deadline - time.monotonic()
            assert left > 0, f"no {pattern!r} in: {self.said[self._seen :]}"
            if select.select([self._ours], [], [], left)[0]:
                try:
                    self.said += os.read(self._ours, 1 << 16).decode(errors="replace")
                except OSError:  # the other end is closed
                    assert re.search(pattern, self.said[self._seen :]), self.said
        before = self.said[self._seen : self._seen + found.end()]
        self._seen += found.end()
        return before

    def end(self, seconds: float = PATIENCE_SECS) -> int:
        """Waits for the end; returns the exit code."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.said
            if select.select([self._ours], [], [], 0.05)[0]:
                try:
                    self.said += os.read(self._ours, 1 << 16).decode(errors="replace")
                except OSError:
                    break
        try:
            while select.select([self._ours], [], [], 0)[0]:
                self.said += os.read(self._ours, 1 << 16).decode(errors="replace")
        except OSError:
            pass
        return self.process.wait(seconds)


@pytest.fixture
def debug(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(stop: str, *options: object) -> Terminal:
        (tmp_path / "job.py").write_text(JOB.replace("STOP", stop))
        terminal = Terminal("run", "job.py", *options, cwd=tmp_path)
        opened.append(terminal)
        return terminal

    yield start
    for terminal in opened:
        terminal.__exit__(None, None, None)


PROMPT = r"\(Pdb\) "


def row(terminal: Terminal, component: str) -> list[str]:
    return next(line.split() for line in terminal.said.splitlines() if line.split()[:1] == [component])


@pytest.mark.parametrize("stop", ["breakpoint()", "import pdb; pdb.set_trace()"])
def test_a_breakpoint_in_a_bolt_gives_a_prompt_and_the_run_goes_on_from_there(
    debug: Callable[..., Terminal], stop: str
) -> None:
    terminal = debug(stop, "--debugger")
    words = []
    for _ in range(3):
        where = terminal.until(PROMPT)
        assert "job.py" in where
        assert "execute" in where
        terminal.type('p tup["word"]')
        words += re.findall(r"\'(storm|spark)\'", terminal.until(PROMPT))
        terminal.type("c")
    assert sorted(words) == ["spark", "storm", "storm"]
    assert terminal.end() == 0, terminal.said
    assert row(terminal, "count")[:4] == ["count", "2", "3", "3"]
    assert row(terminal, "words")[3] == "3"
    assert "\x1b[?25l" not in terminal.said, "a spinner hid the cursor"


def test_quitting_the_debugger_ends_the_run_and_is_no_error_of_the_bolt(debug: Callable[..., Terminal]) -> None:
    terminal = debug("breakpoint()", "--debugger")
    terminal.until(PROMPT)
    terminal.type("q")
    if sys.version_info >= (3, 14):
        terminal.until(r"\[y/n\]")
        terminal.type("y")
    assert terminal.end() == 130, terminal.said
    assert "BdbQuit" not in terminal.said
    assert "Traceback" not in terminal.said


def test_an_exception_has_its_trace(debug: Callable[..., Terminal]) -> None:
    terminal = debug("tup['wrod']", "--debugger")
    assert terminal.end() == 1, terminal.said
    assert "tup['wrod']" in terminal.said
    assert "UnknownFieldError" in terminal.said


@pytest.mark.parametrize(
    "options", [["--checkpoint", "x"], ["--json"], ["--master", "local[1]"]], ids=["checkpoint", "json", "master"]
)
def test_what_makes_no_sense_with_it_is_refused(debug: Callable[..., Terminal], options: list[str]) -> None:
    terminal = debug("pass", "--debugger", *options)
    assert terminal.end() == 2
    assert f"{options[0]} can't be given with --debugger" in " ".join(terminal.said.split())


def test_ctrl_c_ends_the_run(debug: Callable[..., Terminal]) -> None:
    terminal = debug("import time; print('now'); time.sleep(60)", "--debugger")
    terminal.until("now")
    terminal.process.send_signal(2)
    assert terminal.end(20) == 130, terminal.said
    assert "Traceback" not in terminal.said


class Editor:
    """What an editor is to a debugger: a client of the Debug Adapter Protocol."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._file = self._socket.makefile("rb")
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def send(self, command: str, **arguments: Any) -> int:
        self._number += 1
        body = json.dumps({"seq": self._number, "type": "request", "command": command, "arguments": arguments}).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self._number

    def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        number = self.send(command, **arguments)
        while True:
            message = self._read()
            if message["type"] == "response" and message["request_seq"] == number:
                assert message["success"], message
                found: dict[str, Any] = message.get("body") or {}
                return found
            self.events.append(message)

    def event(self, name: str) -> dict[str, Any]:
        while True:
            for at, message in enumerate(self.events):
                if message.get("event") == name:
                    del self.events[at]
                    found: dict[str, Any] = message.get("body") or {}
                    return found
            self.events.append(self._read())

    def _read(self) -> dict[str, Any]:
        size = 0
        while line := self._file.readline().strip():
            size = int(line.partition(b":")[2])
        message: dict[str, Any] = json.loads(self._file.read(size))
        return message


@pytest.mark.slow
def test_an_editors_debugger_stops_at_its_breakpoints_and_at_those_in_the_code(
    debug: Callable[..., Terminal], tmp_path: Path
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    terminal = debug("if tup['word'] == 'spark': breakpoint()", "--debugger-port", port)
    terminal.until("Waiting for a debugger")
    editor = Editor(port)
    try:
        editor.ask("initialize", adapterID="test", linesStartAt1=True, pathFormat="path")
        editor.send("attach", justMyCode=True)
        editor.event("initialized")
        line = 1 + (tmp_path / "job.py").read_text().splitlines().index("        pass")
        editor.ask("setBreakpoints", source={"path": str(tmp_path / "job.py")}, breakpoints=[{"line": line}])
        editor.ask("configurationDone")
        words = []
        for _ in range(4):
            stopped = editor.event("stopped")
            frame = editor.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"][0]
            assert Path(frame["source"]["path"]).name == "job.py"
            words.append(editor.ask("evaluate", expression="tup['word']", frameId=frame["id"])["result"])
            editor.ask("continue", threadId=stopped["threadId"])
        assert sorted(words) == ["'spark'", "'spark'", "'storm'", "'storm'"]
        assert terminal.end() == 0, terminal.said
    finally:
        editor.close()
    assert row(terminal, "end")[2] == "3"


def test_a_port_that_is_taken_is_said(debug: Callable[..., Terminal]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        terminal = debug("pass", "--debugger-port", taken.getsockname()[1])
        assert terminal.end() == 1
        assert "--debugger-port" in terminal.said
        assert "choose another" in " ".join(terminal.said.split())
