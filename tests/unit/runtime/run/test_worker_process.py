"""Worker hooks, and what tasks share in a process."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from stormtest import make_worker

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichSpout,
    BaseWorkerHook,
    Fields,
    InvalidTopologyError,
    TopologyBuilder,
    TopologyContext,
)
from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.errors import ComponentError
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.runtime.run.worker_process import release
from storm_on_spark.testing.simulated import SimulatedSpark

pytestmark = pytest.mark.usefixtures("hosts_in_this_process")


class Pool:
    """A resource that can't be pickled."""

    def __init__(self) -> None:
        self.lent = 0

    def __reduce__(self):
        raise TypeError("a pool stays where it is")


class Lend(BaseWorkerHook):
    def __init__(self, log: str, name: str):
        self.log, self.name = log, name

    def start(self, conf, context):
        self.say(f"start {self.name} {conf['my.key']} {context.get_component_tasks('lent')}")
        context.set_resource(self.name, Pool())

    def shutdown(self):
        self.say(f"shutdown {self.name}")

    def say(self, text: str) -> None:
        with Path(self.log).open("a") as file:
            file.write(f"{text}\n")


class Numbers(BaseRichSpout):
    def open(self, conf, context, collector):
        self.collector, self.next, self.pool = collector, 0, context.get_resource("a")
        assert isinstance(self.pool, Pool)

    def next_tuple(self):
        if self.next < 20:
            self.collector.emit([self.next], message_id=self.next)
            self.next += 1

    def exhausted(self):
        return self.next == 20

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))


class Lent(BaseBasicBolt):
    seen: ClassVar[set[int]] = set()

    def prepare(self, conf, context):
        self.context, self.kept, self.count = context, {"pool": context.get_resource("b")}, 0

    def execute(self, tup, collector):
        assert self.kept["pool"] is self.context.get_resource("b")
        self.kept["pool"].lent += 1
        self.count += 1


def builder(log: Path, *more: BaseWorkerHook) -> TopologyBuilder:
    made = TopologyBuilder()
    made.set_spout("numbers", Numbers())
    made.set_bolt("lent", Lent(), 2).shuffle_grouping("numbers")
    for hook in (Lend(str(log), "a"), Lend(str(log), "b"), *more):
        made.add_worker_hook(hook)
    return made


def test_hooks_run_once_in_a_process_before_its_tasks_and_end_in_reverse(tmp_path: Path) -> None:
    log = tmp_path / "log"
    graph = compile_graph(builder(log).create_topology(), effective_conf({"my.key": 7}))
    info = InProcessTopology(graph, "lent").run()
    assert (info.status, info.acked, info.errors) == ("COMPLETED", 20, ())
    assert log.read_text().splitlines() == ["start a 7 [1, 2]", "start b 7 [1, 2]", "shutdown b", "shutdown a"]


def test_a_resource_is_no_state_and_survives_that_tasks_move(tmp_path: Path) -> None:
    topology = builder(tmp_path / "log").create_topology()
    spark = SimulatedSpark.of(topology, tmp_path / "checkpoint", {"my.key": 7}, retries=0.3)
    with spark:
        spark.start()
        for _ in range(100):
            spark.clock.advance(1)
            spark.step()
            if spark.coordinator.completed.is_set():
                break
        assert spark.coordinator.completed.is_set()
        assert not spark.failures
        assert not spark.errors
        assert sum(state["count"] for state in spark.states("lent")) == 20


class Broken(BaseWorkerHook):
    def start(self, conf, context):
        raise RuntimeError("no pool")


def test_a_hook_that_raises_ends_the_topology_and_those_before_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    worker = make_worker(builder(log, Broken()), {"my.key": 7})
    with pytest.raises(ComponentError, match=r"worker hook Broken.* failed in start: RuntimeError: no pool"):
        worker.context(1)
    assert log.read_text().splitlines()[-2:] == ["shutdown b", "shutdown a"]


def test_an_error_in_shutdown_does_not_keep_others_from_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(BaseWorkerHook):
        def shutdown(self):
            raise RuntimeError("stuck")

    log = tmp_path / "log"
    worker = make_worker(builder(log, Stuck()), {"my.key": 7})
    worker.context(1)
    release(worker.spec.start_id)
    release(worker.spec.start_id)
    assert log.read_text().splitlines()[-2:] == ["shutdown b", "shutdown a"]
    assert [record.message.rpartition(".")[2] for record in caplog.records] == ["Stuck failed in shutdown"]


def test_only_hooks_are_added() -> None:
    with pytest.raises(InvalidTopologyError, match="add_worker_hook takes an instance of a subclass of BaseWorkerHook"):
        TopologyBuilder().add_worker_hook(Broken)  # type: ignore[arg-type]


def contexts(tmp_path: Path) -> list[TopologyContext]:
    worker = make_worker(builder(tmp_path / "log"), {"my.key": 7, "topology.worker.shared.thread.pool.size": 2})
    tasks = [*worker.wiring.plan.components["lent"].tasks, *worker.wiring.plan.components["numbers"].tasks]
    return [worker.context(task) for task in tasks]


def test_what_tasks_share(tmp_path: Path) -> None:
    one, other, spout = contexts(tmp_path)
    one.set_task_data("a", 1)
    one.set_executor_data("a", 2)
    one.set_resource("mine", 3)
    assert [context.get_task_data("a") for context in (one, other, spout)] == [1, None, None]
    assert [context.get_executor_data("a") for context in (one, other, spout)] == [2, 2, None]
    assert [context.get_resource("mine") for context in (one, other, spout)] == [3, 3, 3]
    assert one.this_worker_tasks == spout.get_this_worker_tasks() == sorted(
        context.this_task_id for context in (one, other, spout)
    )  # fmt: skip
    assert one.this_worker_port == one.get_this_worker_port() == -1
    assert one.get_shared_executor() is other.shared_executor
    assert one.shared_executor.submit(lambda: 7).result(60) == 7
    assert one.pid_dir == one.get_pid_dir() != ""
    assert one.get_topology_name() == "test"
    assert list(one.get_raw_topology()) == ["numbers", "lent"]
    assert spout.get_this_output_fields_for_streams() == {"default": ["number"]}


def test_the_code_is_where_storm_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, *_ = contexts(tmp_path)
    assert one.code_dir == str(tmp_path)
    (tmp_path / "resources").mkdir()
    assert one.get_code_dir() == str(tmp_path / "resources")


def test_what_has_no_meaning_here_says_why(tmp_path: Path) -> None:
    one, *_ = contexts(tmp_path)
    with pytest.raises(AttributeError, match="no 'get_task_to_node_port': Spark places bolts again"):
        one.get_task_to_node_port()
    with pytest.raises(AttributeError, match=r"has no 'get_nothing'$"):
        one.get_nothing()
