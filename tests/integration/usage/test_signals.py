"""A command that a signal ends at any moment ends soon, says so in a sentence, and leaves nothing."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from processes import ROOT
from waiting import eventually

from storm_on_spark.runtime.processes.run_folder import remove_if_abandoned
from storm_on_spark.spark.session.folders.owned import remove_abandoned

TOPOLOGY = """
from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, TopologyBuilder

class Numbers(BaseRichSpout):
    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0

    def next_tuple(self):
        self.collector.emit([self.next], message_id=self.next)
        self.next += 1

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))

class Sum(BaseBasicBolt):
    def prepare(self, conf, context):
        self.sum = 0

    def execute(self, tup, collector):
        self.sum += tup["number"]

def build(conf):
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("sum", Sum()).global_grouping("numbers")
    return builder.create_topology()
"""
SCRIPT = (
    TOPOLOGY
    + """
from storm_on_spark.spark.main import run_main

if __name__ == "__main__":
    run_main(build)
"""
)
LOCAL_SCRIPT = (
    TOPOLOGY
    + """
import sys, time
from storm_on_spark import LocalCluster

if __name__ == "__main__":
    with LocalCluster() as cluster:
        cluster.submit_topology("counting", {}, build({}))
        print("it runs", file=sys.stderr, flush=True)
        time.sleep(600)
"""
)
KINDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STORM_SPARK = [sys.executable, "-m", "storm_on_spark.cli"]
MARK = "SIGNALLED_BY_A_TEST"
ALL_MOMENTS = 20
"""Of each command's start."""
ENDS_SECS = 40
"""Seconds within which a command has ended after a signal, on a machine that is busy; a run drains meanwhile."""


@dataclass(frozen=True)
class Blow:
    """A signal, or two.

    Args:
        after: seconds since the command can hear it.
        kinds: the signals.
        gap: seconds between them.
        to_group: whether they go to all processes of its group, as those of a terminal.
    """

    after: float
    kinds: tuple[signal.Signals, ...]
    gap: float
    to_group: bool


def blows(seed: int, count: int, longest: float) -> list[Blow]:
    """Returns blows at moments that are spread over `longest` seconds."""
    chance = random.Random(seed)
    return [
        Blow(
            after=longest * (number + chance.random()) / count,
            kinds=tuple(chance.choice(KINDS) for _ in range(chance.choice((1, 2)))),
            gap=chance.choice((0.0, 0.2, 1.2)),
            to_group=chance.random() < 0.5,
        )
        for number in range(count)
    ]


class Command:
    """A command that a test starts and hits."""

    def __init__(self, arguments: list[str], folder: Path, **more: str) -> None:
        self.temporary, self.mark = folder / "temporary", f"{MARK}={folder}"
        self.temporary.mkdir()
        self.errors = folder / "stderr"
        environment = {**os.environ, "TMPDIR": str(self.temporary), MARK: str(folder), "PYTHONPATH": str(ROOT), **more}
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                arguments,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                # Below `nohup` it is ignored, as it should be.
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
            )

    def hears(self) -> bool:
        """Returns whether it handles SIGTERM."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)

    def hit(self, blow: Blow) -> None:
        time.sleep(blow.after)  # the moment is what is tested
        for number, kind in enumerate(blow.kinds):
            if number:
                time.sleep(blow.gap)
            try:
                (os.killpg if blow.to_group else os.kill)(self.process.pid, kind)
            except ProcessLookupError:
                return

    @property
    def said(self) -> str:
        return self.errors.read_text()

    def marked(self) -> list[psutil.Process]:
        """Returns the living processes that come from it."""
        found = []
        for process in psutil.process_iter():
            try:
                environ = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
                if self.mark.encode() in environ and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (OSError, psutil.NoSuchProcess):
                continue
        return found

    def kill(self) -> None:
        for process in self.marked():
            process.kill()
        self.process.wait()


def check(arguments: list[str], folder: Path, blow: Blow, drains: bool) -> None:
    """Starts a command and hits it; it has to end well, and to leave nothing."""
    folder.mkdir()
    command = Command(arguments, folder)
    try:
        eventually(command.hears, "the command handles signals", every=0.001)
        command.hit(blow)
        code = command.process.wait(ENDS_SECS)
        said = command.said
        assert code in {128 + kind for kind in blow.kinds} | ({0} if drains else set()), said
        assert "Traceback" not in said
        assert "Exception" not in said
        assert len(blow.kinds) == 2 or "second signal" not in said
        assert code == 0 or "Stopped by SIG" in said or "stopped at once" in said or drains, said
        eventually(lambda: not command.marked(), f"no process is left, {blow}")
        assert list(command.temporary.iterdir()) == []
    finally:
        command.kill()


def run_of(folder: Path) -> list[str]:
    (folder / "counting.py").write_text(TOPOLOGY)
    return [*STORM_SPARK, "run", str(folder / "counting.py"), "--name", "counting"]


def script_of(folder: Path) -> list[str]:
    (folder / "job.py").write_text(SCRIPT)
    return [sys.executable, str(folder / "job.py")]


def local_script_of(folder: Path) -> list[str]:
    (folder / "local.py").write_text(LOCAL_SCRIPT)
    return [sys.executable, str(folder / "local.py")]


def start_secs(arguments: list[str], folder: Path, ready: str) -> float:
    """Returns how long the command takes from hearing signals until it runs, on this machine now."""
    folder.mkdir()
    command = Command(arguments, folder)
    try:
        eventually(command.hears, "the command handles signals", every=0.001)
        began = time.monotonic()
        eventually(lambda: ready in command.said or command.process.poll() is not None, ready, 120)
        assert ready in command.said, command.said
        return time.monotonic() - began
    finally:
        command.kill()


@pytest.fixture(scope="module")
def all_moments(tmp_path_factory: pytest.TempPathFactory) -> list[Blow]:
    """Blows all over the start of a command, as long as that takes on this machine now."""
    folder = tmp_path_factory.mktemp("start")
    return blows(1, ALL_MOMENTS, 1.2 * start_secs(run_of(folder), folder / "whole", "acked"))


def few(among: list[Blow], count: int, chance: random.Random) -> list[Blow]:
    """Returns `count` of them, one from each part of the start."""
    ends = [len(among) * number // count for number in range(count + 1)]
    return [chance.choice(among[begin:end]) for begin, end in pairwise(ends)]


@pytest.mark.slow
@pytest.mark.timeout(1800)
# A script starts in the same way; what interrupts one is also tested below.
@pytest.mark.parametrize("arguments_of", [run_of, pytest.param(script_of, marks=pytest.mark.soak)])
def test_it_ends_at_any_moment_of_its_start(
    tmp_path: Path, all_moments: list[Blow], arguments_of: Callable[[Path], list[str]]
) -> None:
    """A few of them; `make test-moments` takes all."""
    seed = int(os.environ.get("MOMENTS_SEED", "0")) or random.randrange(1, 1 << 30)
    print(f"the same moments: MOMENTS_SEED={seed}")
    arguments = arguments_of(tmp_path)
    for number, blow in enumerate(few(all_moments, int(os.environ.get("MOMENTS", "3")), random.Random(seed))):
        check(arguments, tmp_path / str(number), blow, drains=True)


@pytest.fixture
def silent_proxy() -> Iterator[socket.socket]:
    """A proxy that takes requests and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(ENDS_SECS)
        yield listener


@pytest.mark.parametrize("kind", [*KINDS, signal.SIGKILL])
def test_a_script_that_ends_while_jars_are_fetched_leaves_no_resolver(
    tmp_path: Path, silent_proxy: socket.socket, kind: signal.Signals
) -> None:
    cache = tmp_path / "cache"
    proxy = f"-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={silent_proxy.getsockname()[1]}"
    command = Command(local_script_of(tmp_path), tmp_path, XDG_CACHE_HOME=str(cache), JAVA_TOOL_OPTIONS=proxy)
    try:
        asked, _ = silent_proxy.accept()
        with asked:
            assert any(process.name() == "java" for process in command.marked()), "Ivy asks"
            command.process.send_signal(kind)
            assert command.process.wait(ENDS_SECS) == -kind
            eventually(lambda: not command.marked(), "no process is left")
        left = [*command.temporary.iterdir(), *(cache / "storm-on-spark" / "jars").iterdir()]
        # Nobody can remove anything at SIGKILL; what was left goes with the next fetch.
        assert bool(left) == (kind == signal.SIGKILL)
        remove_abandoned([command.temporary, cache / "storm-on-spark" / "jars"])
        # So does the folder of its start, which a live process has removed that had begun by then.
        for folder in command.temporary.glob("storm-run-*"):
            remove_if_abandoned(folder)
        assert [path for path in left if path.exists()] == []
    finally:
        command.kill()


@pytest.mark.slow
def test_a_script_that_is_interrupted_while_it_starts_or_stops_a_topology_hears_of_it_and_nothing_of_py4j() -> None:
    script = [sys.executable, str(Path(__file__).with_name("interrupting.py"))]
    done = subprocess.run(script, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == [*["start heard", "stop heard False"] * 2, ""]
    assert "Traceback" not in done.stderr
    assert "ERROR" not in done.stderr
