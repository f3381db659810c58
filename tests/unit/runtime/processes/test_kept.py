"""Servers that a thread keeps: waiting for them, and their end."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import psutil
import pytest

from storm_on_spark.runtime.processes.kept_program import KeptProcess


def kept(folder: Path, code: str) -> KeptProcess:
    return KeptProcess("kept", [sys.executable, "-I", "-S", "-c", code], folder, folder / "out")


def test_it_is_waited_for_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    server = kept(tmp_path, "import time; print('up', flush=True); time.sleep(60)")
    assert server.serves(lambda: "up" in (tmp_path / "out").read_text("utf-8"), 30)
    pid = server.pid
    assert pid is not None
    server.end(signal.SIGTERM)
    assert server.pid is None
    assert not psutil.pid_exists(pid)


def test_a_paused_one_ends_in_order(tmp_path: Path) -> None:
    code = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("in order", flush=True), sys.exit()))
print("up", flush=True)
time.sleep(60)
"""
    server = kept(tmp_path, code)
    out = tmp_path / "out"
    assert server.serves(lambda: "up" in out.read_text("utf-8"), 30)
    server.send(signal.SIGSTOP)
    server.end(signal.SIGTERM)
    assert "in order" in out.read_text("utf-8")
    server.send(signal.SIGTERM)  # to nobody


def test_one_that_ends_or_does_not_come_up_in_time_is_not_waited_for(tmp_path: Path) -> None:
    assert not kept(tmp_path, "raise SystemExit").serves(lambda: False, 30)
    slow = kept(tmp_path, "import time; time.sleep(60)")
    assert not slow.serves(lambda: False, 0.1)
    slow.end()
    assert slow.pid is None


def test_a_folder_that_is_not_there_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        KeptProcess("kept", [sys.executable], tmp_path / "gone", tmp_path / "out")


def test_what_it_has_started_ends_with_it_and_what_it_answers_has_a_file(tmp_path: Path) -> None:
    code = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"], preexec_fn=os.setpgrp)
print(child.pid, flush=True)
print("a log", file=sys.stderr, flush=True)
child.wait()
"""
    answers = tmp_path / "answers"
    command = [sys.executable, "-I", "-S", "-c", code]
    server = KeptProcess("kept", command, tmp_path, tmp_path / "out", answers=answers)
    assert server.serves(lambda: answers.read_text("utf-8").endswith("\n") and (tmp_path / "out").read_text(), 30)
    child = psutil.Process(int(answers.read_text("utf-8")))
    assert (tmp_path / "out").read_text("utf-8") == "a log\n"
    assert server.end(signal.SIGTERM)
    assert server.exit_code == -signal.SIGTERM
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
