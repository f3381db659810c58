"""The live table in a cell of a real kernel; the topology is a stand-in, so no Spark is needed."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from lengths import PATIENCE_SECS

from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.spark.running.interrupts import interruptible
from storm_on_spark.spark.running.notebook_cell import show_live

STAND_IN = """
import time
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.spark.running.notebook_cell import show_live

class Query:
    message_timeout_secs, resumed_batch = 30.0, None

    def __init__(self):
        self.isActive, self.acked = True, 0

    def status_info(self):
        self.acked += 10 * self.isActive
        status = "ACTIVE" if self.isActive else "KILLED"
        return TopologyInfo("stand-in", status, 1.0, emitted=self.acked, acked=self.acked)

    def wait_until(self, condition, seconds):
        time.sleep(seconds)

    def stop(self):
        self.isActive = False
"""


def test_it_redraws_in_place_and_an_interrupt_of_the_cell_stops_the_topology(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jupyter_client.manager import KernelManager

    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(Path(__file__).parents[4]))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(60)
        request = client.execute(f"{STAND_IN}\nquery = Query()\nprint('end:', show_live(query).status)")
        shown: list[str] = []
        said = ""
        deadline = time.monotonic() + PATIENCE_SECS
        while time.monotonic() < deadline:
            message = client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            assert message["msg_type"] != "error", content
            said += content.get("text", "")
            if message["msg_type"] == "update_display_data":
                shown.append(content["data"]["text/html"])
                if len(shown) == 3:
                    manager.interrupt_kernel()
            if content.get("execution_state") == "idle":
                break
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
        manager.cleanup_resources()
    assert "end: KILLED" in said
    assert "ACTIVE" in shown[0]
    assert "<polyline" in shown[2]
    assert "stand-in: KILLED" in shown[-1]


class Ending:
    """Ends after a second look."""

    message_timeout_secs, resumed_batch = 30.0, None

    def __init__(self) -> None:
        self.looks = 0

    @property
    def isActive(self) -> bool:
        return self.looks < 2

    def status_info(self) -> TopologyInfo:
        self.looks += 1
        return TopologyInfo("words", "ACTIVE" if self.isActive else "COMPLETED", 1.0, acked=7)

    def wait_until(self, condition: object, seconds: float) -> None:
        pass


def test_without_a_notebook_it_is_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    info = show_live(Ending())  # type: ignore[arg-type]
    assert info.status == "COMPLETED"
    out, err = capsys.readouterr()
    assert out == ""
    assert "words: COMPLETED, 7 acked, 0 failed, 0 pending" in err


def test_an_interrupt_ends_the_waiting_and_pysparks_handler_comes_back() -> None:
    called: list[int] = []

    def cancels_all_jobs(number: int, frame: object) -> None:
        called.append(number)

    cancels_all_jobs.__module__ = "pyspark.core.context"
    before = signal.signal(signal.SIGINT, cancels_all_jobs)
    try:
        with pytest.raises(KeyboardInterrupt), interruptible():
            signal.raise_signal(signal.SIGINT)
        assert called == []
        signal.raise_signal(signal.SIGINT)
        assert called == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_of_somebody_elses_stays() -> None:
    called: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: called.append(number))
    try:
        with interruptible():
            signal.raise_signal(signal.SIGINT)
        assert called == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)
