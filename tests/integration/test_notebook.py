"""The notebook in a kernel of its own, as Jupyter runs it; and the interrupt of a cell."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).parents[2]

ENDLESS = """
from storm_on_spark import BaseBasicBolt, BaseRichSpout, Fields, TopologyBuilder, compile_topology

class Numbers(BaseRichSpout):
    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0

    def next_tuple(self):
        self.next += 1
        self.collector.emit([self.next], self.next)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))

class Odd(BaseBasicBolt):
    def execute(self, tup, collector):
        if tup["n"] == 5:
            raise ValueError("five")

builder = TopologyBuilder()
builder.set_spout("numbers", Numbers())
builder.set_bolt("odd", Odd()).shuffle_grouping("numbers")
query = compile_topology(builder.create_topology(), {"topology.max.spout.pending": 500}).start(name="endless")
"""


@pytest.fixture(autouse=True)
def _paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))


@pytest.fixture
def kernel() -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(ROOT))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(60)
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
        manager.cleanup_resources()


def messages(client: BlockingKernelClient, request: str, seconds: float = 120) -> Iterator[dict[str, Any]]:
    """Yields what a request brings, up to its end."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            message = client.get_iopub_msg(timeout=1)
        except queue.Empty:
            continue
        if message["parent_header"].get("msg_id") == request:
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return
            yield message
    raise AssertionError(f"not done within {seconds} s")


def run(client: BlockingKernelClient, code: str) -> str:
    said = ""
    for message in messages(client, client.execute(code)):
        assert message["msg_type"] != "error", "\n".join(message["content"]["traceback"])
        said += message["content"].get("text", "")
    return said.strip()


@pytest.mark.slow
def test_the_notebook_runs_and_shows_pictures(kernel: tuple[KernelManager, BlockingKernelClient]) -> None:
    _, client = kernel
    run(client, f"import os; os.chdir({str(ROOT / 'notebooks')!r})")
    cells = json.loads((ROOT / "notebooks" / "getting_started.ipynb").read_text())["cells"]
    shown = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            found = list(messages(client, client.execute("".join(cell["source"]))))
            assert [message["content"] for message in found if message["msg_type"] == "error"] == []
            pictures = [message["content"].get("data", {}).get("text/html", "") for message in found]
            shown[cell["id"]] = next((picture for picture in reversed(pictures) if picture), "")
    assert shown["cell-6"].count("<rect") == 3
    assert "Compiled topology" in shown["cell-7"]
    assert "word-count: COMPLETED" in shown["cell-11"]
    assert "State of 2 tasks" in shown["cell-13"]


@pytest.mark.slow
def test_interrupting_the_live_table_stops_the_topology_and_leaves_nothing(
    kernel: tuple[KernelManager, BlockingKernelClient],
) -> None:
    manager, client = kernel
    run(client, ENDLESS)
    me = psutil.Process(int(run(client, "import os; print(os.getpid())")))
    hosts = [child for child in me.children(recursive=True) if "spout_host" in " ".join(child.cmdline())]
    assert hosts, "no spout host: nothing would show that it is gone"
    last = ""
    interrupted = False
    for message in messages(client, client.execute("info = query.live()")):
        assert message["msg_type"] != "error", message["content"]
        last = message["content"].get("data", {}).get("text/html", last)
        if not interrupted and "acked a second" in last and "five" in last:
            manager.interrupt_kernel()
            interrupted = True
    assert interrupted
    assert "endless: KILLED" in last
    # The exception of the bolt came with its line, although the class is of a cell.
    assert 'raise ValueError("five")' in last.replace("&quot;", '"')
    assert run(client, "print(query.isActive, info.status, info.error)") == "False KILLED None"
    assert not any(host.is_running() and host.status() != psutil.STATUS_ZOMBIE for host in hosts)
    # Spark goes on, for the next topology.
    assert "3" in run(
        client, "from storm_on_spark.spark.session.local import local_session; print(local_session().range(3).count())"
    )


@pytest.mark.slow
def test_interrupting_the_waiting_leaves_the_topology_as_it_is(
    kernel: tuple[KernelManager, BlockingKernelClient],
) -> None:
    manager, client = kernel
    run(client, ENDLESS)
    names = []
    for message in messages(client, client.execute("print('waits', flush=True); query.awaitTermination()")):
        if message["msg_type"] == "stream" and "waits" in message["content"]["text"]:
            manager.interrupt_kernel()
        if message["msg_type"] == "error":
            names.append(message["content"]["ename"])
    assert names == ["KeyboardInterrupt"]
    before = int(run(client, "print(query.status_info().acked)"))
    said = run(client, f"query.wait_until(lambda: query.status_info().acked > {before}, 60); print(query.isActive)")
    assert said.endswith("True")
    run(client, "query.stop()")
