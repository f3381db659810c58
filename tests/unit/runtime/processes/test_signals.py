"""A process that is told to end does, whenever the signals come."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from storm_on_spark.runtime.processes.ending.signals import held_back

_WAITS = """
import os, signal, sys, threading
from storm_on_spark.runtime.processes.ending.signals import ended_by_signal

left = {often}

def traced(frame, event, arg):
    # At each step within `wait` and `set` of the event, which have its lock for some of them.
    if frame.f_code.co_filename != threading.__file__ or threading.current_thread() is not threading.main_thread():
        return None
    global left
    if event == "line" and left:
        left -= 1
        os.kill(os.getpid(), signal.SIGTERM)
    return traced

with ended_by_signal() as ended:
    sys.settrace(traced)
    {call}
    sys.settrace(None)
    assert ended.wait(20) and not left
"""


@pytest.mark.parametrize("call", ["ended.wait(20)", "ended.set()"])
def test_signals_that_come_while_the_event_is_locked_do_not_block_the_process(call: str) -> None:
    script = _WAITS.format(call=call, often=5)
    done = subprocess.run([sys.executable, "-c", script], timeout=40, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_process_that_waits_ends_after_one_signal() -> None:
    script = """
from storm_on_spark.runtime.processes.ending.signals import ended_by_signal
with ended_by_signal() as ended:
    print("up", flush=True)
    ended.wait()
print("ends")
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.terminate()
        assert process.stdout.read() == "ends\n"
        assert process.wait() == 0


def test_a_signal_that_does_not_interrupt_the_wait_is_heard_all_the_same() -> None:
    script = """
import os, signal, threading
from storm_on_spark.runtime.processes.ending.signals import ended_by_signal

def send():
    # To this thread: the main thread, which waits, is not interrupted.
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

with ended_by_signal() as ended:
    threading.Timer(0.2, send).start()
    ended.wait()
print("ends")
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=40, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr


@pytest.mark.parametrize(
    ("within", "number", "sees_to_it"),
    [
        ("signals.ended_by_signal()", "SIGTERM", "OSError"),
        ("at_once.interrupts_raised()", "SIGINT", "KeyboardInterrupt"),
    ],
)
def test_a_thread_that_hears_late_leaves_a_signal_to_whoever_saw_to_it(
    within: str, number: str, sees_to_it: str
) -> None:
    script = f"""
import contextlib, os, signal, time
from storm_on_spark.runtime.processes.ending import at_once, signals

read = os.read
def late(descriptor, size):
    found = read(descriptor, size)
    time.sleep(0.3)
    return found
os.read = late

at_once.install()
with contextlib.suppress({sees_to_it}), {within}:
    os.kill(os.getpid(), signal.{number})
    time.sleep(0)
print("ends in order", flush=True)
time.sleep(0.6)
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=60, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends in order\n", "")


def test_an_interrupt_before_a_process_can_ignore_it_does_not_end_it() -> None:
    script = """
print("imports", flush=True)
input()
from storm_on_spark.runtime.processes.ending.signals import ignore_interrupts
ignore_interrupts()
print("works", flush=True)
input()
"""
    with held_back(signal.SIGINT):
        child = subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1, stderr=-1, text=True)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with child:
        assert child.stdin
        assert child.stdout
        for told in ("imports", "works"):
            assert child.stdout.readline() == f"{told}\n"
            child.send_signal(signal.SIGINT)
            child.stdin.write("\n")
            child.stdin.flush()
        _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (0, "")
