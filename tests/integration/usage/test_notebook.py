"""The notebooks in kernels, as Jupyter runs them; the interrupt of a cell, and classes that are defined in cells."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager
from kernels import NOTEBOOKS, kernel_in, messages, run, run_notebook
from waiting import eventually

from storm_on_spark.connectors.kafka.server import KafkaServer
from storm_on_spark.testing.plugin import kafka_server

__all__ = ["kafka_server"]

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

UNHEARD = """
import signal, threading
threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT)).start()
try:
    query.awaitTermination()
except KeyboardInterrupt:
    print("heard")
"""


CLUSTER = """
import time
from storm_on_spark import LocalCluster

with LocalCluster() as cluster:
    cluster.submit_topology("endless", {"topology.max.spout.pending": 500}, builder.create_topology())
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    """One kernel, and so one session of Spark, for all notebooks."""
    own = tmp_path_factory.mktemp("jupyter")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PLATFORM_DIRS", "1")
        patch.setenv("IPYTHONDIR", str(own / "ipython"))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(own / "runtime"))
        with kernel_in(NOTEBOOKS) as started:
            yield started


@pytest.mark.slow
def test_the_first_notebook_shows_graph_plan_run_and_state(kernel: tuple[KernelManager, BlockingKernelClient]) -> None:
    shown = run_notebook(kernel[1], "getting_started")
    assert shown[2].pages[-1].count("<rect") == 3
    assert "Compiled topology" in shown[3].pages[-1]
    assert "word-count: COMPLETED" in shown[5].pages[-1]
    assert "State of 2 tasks" in shown[6].pages[-1]


@pytest.mark.slow
def test_groupings_are_drawn_and_counted(kernel: tuple[KernelManager, BlockingKernelClient]) -> None:
    shown = run_notebook(kernel[1], "groupings")
    assert shown[1].pages[-1].count("<rect") == 8
    assert "fields" in shown[2].pages[-1]
    assert "partial_key" in shown[3].printed


@pytest.mark.slow
def test_failures_are_seen_and_a_class_that_is_redefined_in_a_cell_runs(
    kernel: tuple[KernelManager, BlockingKernelClient],
) -> None:
    shown = run_notebook(kernel[1], "reliability")
    assert "no such account (order 13)" in shown[2].pages[-1]
    # The notebook checks that none fails any more.
    assert "orders-again: COMPLETED" in shown[-1].pages[-1]


@pytest.mark.soak
def test_settings_are_measured_and_the_time_of_micro_batches_is_drawn(
    kernel: tuple[KernelManager, BlockingKernelClient],
) -> None:
    shown = run_notebook(kernel[1], "tuning")
    assert "executes" in shown[-2].pages[-1]
    assert "executes" in shown[-1].printed


@pytest.mark.slow
def test_the_notebook_of_delta_runs(kernel: tuple[KernelManager, BlockingKernelClient]) -> None:
    assert any("clicks: COMPLETED" in page for cell in run_notebook(kernel[1], "delta") for page in cell.pages)


@pytest.mark.slow
def test_from_kafka_to_delta_with_live_counts(
    kernel: tuple[KernelManager, BlockingKernelClient], kafka_server: KafkaServer
) -> None:
    run(kernel[1], f"import os; os.environ['KAFKA_BOOTSTRAP_SERVERS'] = '{kafka_server.bootstrap_servers}'")
    shown = run_notebook(kernel[1], "kafka_to_delta")
    live = [page for cell in shown for page in cell.pages if "kafka-to-delta: ACTIVE" in page]
    assert len(set(live)) > 3, "it is drawn again and again"
    assert "acked a second" in live[-1]
    assert "<polyline" in live[-1]


@pytest.mark.slow
def test_interrupting_the_live_table_stops_the_topology_and_leaves_nothing(
    kernel: tuple[KernelManager, BlockingKernelClient],
) -> None:
    manager, client = kernel
    run(client, ENDLESS)
    me = psutil.Process(int(run(client, "import os; print(os.getpid())")))
    hosts = []
    for child in me.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # also a zombie: what a notebook before has left ends now
            if "spout_host" in " ".join(child.cmdline()):
                hosts.append(child)
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
    # An interrupt that another thread takes does not wake the one that waits.
    assert run(client, UNHEARD) == "heard"
    run(client, "query.stop()")


@pytest.mark.slow
def test_interrupting_the_start_leaves_nothing_and_the_next_topology_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for name, folder in (("IPYTHONDIR", "ipython"), ("JUPYTER_RUNTIME_DIR", "runtime"), ("TMPDIR", "temporary")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    with kernel_in(tmp_path) as (_, client):
        me = psutil.Process(int(run(client, "import os; print(os.getpid())")))
        run(client, ENDLESS.partition("query = ")[0])
        for secs in (0.5, 2.5, 5.0, 9.0):
            names = []
            request = client.execute(CLUSTER)
            # As Jupyter does it.
            interrupt = threading.Timer(secs, os.killpg, (me.pid, signal.SIGINT))
            interrupt.start()
            for message in messages(client, request):
                if message["msg_type"] == "error":
                    names.append(message["content"]["ename"])
            assert names == ["KeyboardInterrupt"], secs
            eventually(lambda: not living(me.children(recursive=True)), f"no process is left after {secs} s")
            assert list(temporary.glob("storm-on-spark*")) == [], secs
        run(client, ENDLESS)
        said = run(
            client, "query.wait_until(lambda: query.status_info().acked > 100, 60); print(query.isActive); query.stop()"
        )
        assert said.endswith("True")


def living(processes: list[psutil.Process]) -> list[psutil.Process]:
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
