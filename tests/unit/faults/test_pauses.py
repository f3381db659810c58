"""A process that was stopped and then killed by another has ended, also while its parent has not looked."""

from __future__ import annotations

import signal
import subprocess
import sys

from lab.faults.scenarios.pauses import has_ended, state, stop


def test_a_zombie_has_ended_and_a_stopped_process_has_not() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        stop(process.pid)
        assert (state(process.pid), has_ended(process.pid)) == ("T", False)
        process.send_signal(signal.SIGKILL)
        while state(process.pid) != "Z":
            pass
        assert has_ended(process.pid)
    finally:
        process.kill()
        process.wait()
    assert has_ended(process.pid)
