"""`storm-spark run` as a user calls it: a process with a terminal, an exit code and signals."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from lengths import PATIENCE_SECS
from topologies import counted_windows
from waiting import eventually

TOPOLOGY = """
import time
from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, TopologyBuilder

print("imported")

class Numbers(BaseRichSpout):
    def open(self, conf, context, collector):
        self.collector, self.next, self.last = collector, 1, conf.get("numbers.last")
        print("spout opened", flush=True)

    def next_tuple(self):
        if not self.exhausted():
            self.collector.emit([self.next], message_id=self.next)
            self.next += 1
            time.sleep(0.001)

    def exhausted(self):
        return self.last is not None and self.next > self.last

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))

class Sum(BaseBasicBolt):
    def prepare(self, conf, context):
        self.sum, self.bad = 0, conf.get("sum.bad")

    def execute(self, tup, collector):
        self.sum += tup["number"]
        if tup["number"] == 7:
            print("a bolt says seven")
        if tup["number"] in (8, 9):
            breakpoint()
        if tup["number"] == self.bad:
            raise ValueError(f"can't add {self.bad}")

def build(conf):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("sum", Sum()).global_grouping("numbers")
    return builder.create_topology()

def report(spark, checkpoint, info):
    print("finished", spark.range(3).count(), info.acked)
    return [{"sum": "of [numbers]", "acked": info.acked}]
"""


@dataclass
class Run:
    """A `storm-spark run` under way."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    """Standard error so far."""
    ended: bool = False

    def wait_for(self, condition: Callable[[str], bool], seconds: float = PATIENCE_SECS) -> None:
        deadline = time.monotonic() + seconds
        while not any(condition(line) for line in self.lines):
            assert time.monotonic() < deadline, self.lines
            assert self.process.poll() is None, self.lines
            time.sleep(0.05)

    def finish(self, seconds: float = PATIENCE_SECS) -> tuple[int, str, str]:
        """Returns exit code, standard output and standard error."""
        assert self.process.stdout is not None
        watchdog = threading.Timer(seconds, self.process.kill)
        watchdog.start()
        try:
            out = self.process.stdout.read()
            code = self.process.wait()
        finally:
            watchdog.cancel()
        self.reader.join(10)
        return code, out, "".join(self.lines)

    def __post_init__(self) -> None:
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(iter(self.process.stderr.readline, ""))


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts a run in a folder and with temporary files of its own, and checks that nothing of it is left."""
    scratch, home = tmp_path / "tmp", tmp_path / "home"
    scratch.mkdir()
    (tmp_path / "user_numbers.py").write_text(TOPOLOGY)
    runs: list[Run] = []

    def go(*arguments: object, target: str = "user_numbers.py") -> Run:
        env = {
            **os.environ,
            "TMPDIR": str(scratch),
            "XDG_STATE_HOME": str(home),
            "PYTHONUNBUFFERED": "1",
            "MARKER_OF_THIS_TEST": str(tmp_path),
        }
        command = [sys.executable, "-m", "storm_on_spark.cli", "run", target, *map(str, arguments)]
        process = subprocess.Popen(
            command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        runs.append(Run(process))
        return runs[-1]

    yield go
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
            run.finish()
        for stream in (run.process.stdout, run.process.stderr):
            assert stream is not None
            stream.close()
    eventually(lambda: not _processes_with(str(tmp_path)), lambda: f"left running: {_processes_with(str(tmp_path))}")
    assert [path.name for path in scratch.iterdir() if not path.name.startswith("hsperfdata")] == []


def _processes_with(marker: str) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("MARKER_OF_THIS_TEST") == marker:
                found.append(" ".join(process.cmdline())[:200])
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def _emitted(line: str) -> bool:
    found = re.search(r"emitted ([\d,]+)", line)
    return found is not None and found[1] != "0"


def test_a_run_prints_one_document_and_another_name_is_refused_its_checkpoint_until_it_is_reset(
    start: Callable[..., Run], tmp_path: Path
) -> None:
    options = ("--json", "--quiet", "-c", "numbers.last=200", "--checkpoint", tmp_path / "state")
    code, out, err = start(*options).finish()
    assert code == 0, err
    document = json.loads(out)
    assert document["topology"] == "user-numbers"
    assert (document["emitted"], document["acked"], document["failed"], document["pending"]) == (200, 200, 0, 0)
    assert set(document["complete_latency_ms"]) == {"p50", "p95", "p99"}
    assert document["components"]["sum"]["executed"] == 200
    assert set(document["components"]["sum"]) == {
        "executed",
        "emitted",
        "transferred",
        "acked",
        "failed",
        "execute_latency_ms",
    }
    assert document["error"] is None
    assert document["result"] == [{"sum": "of [numbers]", "acked": 200}]
    # What users print is there, whichever process printed it; what Java prints is not.
    line = 1 + TOPOLOGY.splitlines().index("            breakpoint()")
    # Each process imports the module; the components' names are there where it is for one of them.
    assert sorted(line for line in err.splitlines() if not line.endswith("imported")) == [
        "[numbers:1] spout opened",
        "[sum:2] a bolt says seven",
        # Once, although two tuples come by, and the run goes on.
        f"[sum:2] breakpoint() in {tmp_path}/user_numbers.py, line {line}, is passed over: this process has no "
        "terminal. `storm-spark run --debugger FILE` runs the topology in one process, in which it works.",
        "finished 3 200",
    ]
    assert "imported" in err.splitlines()

    code, out, err = start(*options, "--name", "another").finish()
    assert code == 2, err
    assert "belongs to topology 'user-numbers'" in err or 'belongs to topology "user-numbers"' in err
    assert json.loads(out)["error"] in err
    code, out, err = start(*options, "--name", "another", "--reset-checkpoint").finish()
    assert (code, json.loads(out)["emitted"]) == (0, 200), err


def test_an_exception_in_a_bolt_is_one_sentence_and_the_log_has_the_rest(start: Callable[..., Run]) -> None:
    code, out, err = start("-c", "sum.bad=50", "--json").finish()
    assert code == 1, err
    assert err.count("Traceback") == 1
    assert 'raise ValueError(f"can\'t add {self.bad}")' in err
    assert err.count("  File ") == 1
    assert "\tat " not in err
    sentence = next(line for line in err.splitlines() if line.startswith("Error: "))
    assert 'component "sum"' in sentence
    assert "ValueError: can't add 50" in sentence
    assert "ValueError: can't add 50" in json.loads(out)["error"]
    log = Path(err.partition("Details are in ")[2].splitlines()[0])
    assert 'raise ValueError(f"can\'t add {self.bad}")' in log.read_text()


@pytest.mark.representative
def test_the_first_signal_drains_and_reports(start: Callable[..., Run]) -> None:
    run = start()
    run.wait_for(_emitted)
    run.process.send_signal(signal.SIGTERM)
    code, out, err = run.finish()
    assert code == 0, err
    assert "finished 3 " in out
    assert "of [numbers]" in out
    assert ", 0 pending" in out
    assert "Draining" in err
    assert "Not everything could be drained" not in out + err


def test_the_second_signal_stops_at_once(start: Callable[..., Run]) -> None:
    run = start("--json")
    run.wait_for(_emitted)
    run.process.send_signal(signal.SIGINT)
    run.wait_for(lambda line: "Draining" in line)
    run.process.send_signal(signal.SIGINT)
    code, out, err = run.finish()
    assert code == 130, err
    assert "finished" not in out
    assert "stopped at once" in json.loads(out)["error"]


@pytest.mark.soak
def test_a_run_that_was_stopped_at_once_goes_on_amid_a_window(start: Callable[..., Run], tmp_path: Path) -> None:
    commits = tmp_path / "state" / "commits"
    options = ("--json", "--checkpoint", commits.parent, "-c", f"windows.notes={tmp_path}")

    def committed() -> int:
        return max((int(path.name) for path in commits.glob("[0-9]*")), default=-1)

    def stopped_amid_a_window(windows: int) -> list[counted_windows.Note]:
        """Has a run commit some more windows, and stops it; returns all that was noted."""
        expected = len(counted_windows.notes_in(tmp_path)) + windows
        run = start(*options, target=counted_windows.__file__)
        eventually(lambda: len(counted_windows.notes_in(tmp_path)) >= expected, lambda: run.lines, PATIENCE_SECS)
        # What is noted by now is in the next micro-batch at the latest.
        last = committed() + 1
        eventually(lambda: committed() >= last, lambda: run.lines, PATIENCE_SECS)
        run.wait_for(_emitted)
        run.process.send_signal(signal.SIGINT)
        run.wait_for(lambda line: "Draining" in line)
        run.process.send_signal(signal.SIGINT)
        code, out, err = run.finish()
        assert code == 130, err
        assert "finished" not in out
        # An end in order has a time limit; where the machine is too busy for it, the process is ended.
        error = json.loads(out)["error"]
        assert "stopped at once" in error or error == "Stopped by SIGINT."
        return counted_windows.notes_in(tmp_path)

    before = stopped_amid_a_window(3)
    after = stopped_amid_a_window(3)
    counted_windows.check_exact(after)
    assert after[len(before)].number > 3, "the second run began anew"


def test_a_port_that_is_taken_is_one_sentence(start: Callable[..., Run]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = start("-c", f"spark.driver.port={port}", "-c", "spark.port.maxRetries=0").finish()
    assert (code, out) == (1, "imported\n"), err
    assert "Traceback" not in err
    assert "\tat " not in err
    (sentence,) = (line for line in err.splitlines() if line.startswith("Error: "))
    assert "Spark does not start: BindException" in sentence
    assert "Address already in use" in sentence
    assert str(port) in sentence


# That what Spark says becomes a sentence is shown by the port above, and by `test_failures.py`.
@pytest.mark.soak
def test_a_checkpoint_that_spark_can_not_write_is_one_sentence(start: Callable[..., Run], tmp_path: Path) -> None:
    state = tmp_path / "state"
    # A file where Spark wants a folder: no user rights needed, and root is refused too.
    (state / "state").mkdir(parents=True)
    (state / "state" / "0").write_text("not a folder")
    code, _, err = start("--checkpoint", state).finish()
    assert code == 1, err
    assert "Traceback" not in err
    assert "\tat " not in err
    (sentence,) = (line for line in err.splitlines() if line.startswith("Error: "))
    assert 'topology "user-numbers" failed: ' in sentence
    assert str(state / "state") in sentence
    assert "may be a mistake of storm-spark" not in err


def test_what_a_killed_run_leaves_goes_at_the_next_start_and_seconds_end_an_endless_run(
    start: Callable[..., Run], tmp_path: Path
) -> None:
    run = start()
    run.wait_for(_emitted)
    run.process.kill()
    run.finish()
    left = [path for path in (tmp_path / "tmp").iterdir() if (path / "checkpoint" / "storm").is_dir()]
    assert left, "it had a temporary checkpoint"
    code, out, err = start("--seconds", "1", "--json", "-c", "topology.priority=3").finish()
    assert code == 0, err
    assert not left[0].exists()
    assert err.count("No effect here: topology.priority (planned).") == 1
    document = json.loads(out)
    assert document["acked"] == document["emitted"] > 0
    assert "Not everything could be drained" not in out + err
