"""The leader's rounds for jobs, on a tree in memory; containers are simulated."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import examples

from storm_on_spark.xd.admin.jobs.executions import MOST_EXECUTIONS
from storm_on_spark.xd.admin.leader import Leader
from storm_on_spark.xd.tree import nodes
from storm_on_spark.xd.tree.jobs import (
    ENDED,
    EXECUTIONS,
    ExecutionNode,
    ReportNode,
    RunNode,
    Status,
    execution_path,
    step_path,
)
from storm_on_spark.xd.tree.nodes import ContainerNode, Definition, Deployment, Order, StatusNode
from tests.unit.xd.memory_tree import MemoryTree


class Cluster:
    """A leader over a tree, and containers whose steps end as the test says."""

    def __init__(self, definition: str, *containers: str) -> None:
        self.tree = MemoryTree()
        self._lead()
        self._asked = 0
        for container in containers:
            self.join(container)
        self.tree.put(f"{nodes.JOBS}/j", Definition(definition=definition))
        self.order(action="deploy")

    def _lead(self) -> None:
        """Another admin leads: it knows nothing but the tree."""
        self.leader = Leader(cast(Any, self.tree), cast(Any, self.tree))

    next_leader = _lead

    def join(self, container: str) -> None:
        self.tree.put(f"{nodes.CONTAINERS}/{container}", ContainerNode(host="h", ip="1", pid=1))
        self.tree.put(f"{nodes.ALLOCATED}/{container}")

    def depart(self, container: str) -> None:
        del self.tree.nodes[f"{nodes.CONTAINERS}/{container}"]
        for path in [path for path in self.tree.nodes if path.startswith(f"{nodes.ALLOCATED}/{container}/")]:
            if path.endswith("/status"):
                del self.tree.nodes[path]

    def order(self, **what: Any) -> int:
        """Asks for something; returns the number of the execution that a launch would have."""
        self.tree.put(f"{nodes.REQUESTED}/{nodes.REQUEST}{self._asked:010}", Order(stream="j", kind="job", **what))
        self._asked += 1
        self.rounds()
        return self._asked

    def rounds(self) -> None:
        """Has the leader go on until nothing changes; containers take their modules."""
        while True:
            before = dict(self.tree.nodes)
            self.leader.round(cast(Any, None), 1)
            for container in self.tree.children(nodes.CONTAINERS):
                for name in self.tree.children(f"{nodes.ALLOCATED}/{container}"):
                    path = f"{nodes.ALLOCATED}/{container}/{name}"
                    if f"{path}/status" not in self.tree.nodes:
                        self.tree.put(f"{path}/status", StatusNode(state="deployed"))
            if self.tree.nodes == before:
                return

    def running(self) -> dict[str, tuple[str, int, bool]]:
        """Returns label -> container, execution, whether it is to stop, of the steps that containers were given."""
        found = {}
        for path in self.tree.nodes:
            head, _, last = path.rpartition("/")
            if last.startswith("run-"):
                node = self.tree.value(path, RunNode)
                assert node is not None
                container, name = head.split("/")[-2:]
                assert name.split(".")[2] not in found, "a step runs twice"
                found[name.split(".")[2]] = container, int(last.removeprefix("run-")), node.stopping
        return found

    def report(self, label: str, status: Status, **more: Any) -> None:
        """Has the container of a step report."""
        container, number, _ = self.running()[label]
        ended = 2.0 if status in ENDED else None
        report = ReportNode(status=status, started=1.0, ended=ended, **more)
        self.tree.put(f"{step_path(container, 'j', label)}/report-{number}", report)
        self.rounds()

    def execution(self, number: int) -> ExecutionNode:
        found = self.tree.value(execution_path(number), ExecutionNode)
        assert found is not None
        return found

    def steps(self, number: int) -> dict[str, str]:
        return {label: step.status for label, step in self.execution(number).steps.items()}


TWO = "a:timestampfile || b:timestampfile"


def test_a_job_runs_step_by_step_and_leaves_no_order_behind() -> None:
    xd = Cluster(TWO, "c1", "c2")
    number = xd.order(action="launch", properties={"day": "7"})
    assert xd.running() == {"a": ("c1", number, False)}
    xd.report("a", "STARTED")
    assert xd.steps(number) == {"a": "STARTED"}
    xd.report("a", "COMPLETED", exit=0)
    assert xd.running() == {"b": ("c2", number, False)}
    xd.report("b", "COMPLETED", exit=0)
    done = xd.execution(number)
    assert (done.status, done.parameters, done.ended is not None) == ("COMPLETED", {"day": "7"}, True)
    assert not [path for path in xd.tree.nodes if "/run-" in path or "/report-" in path or "request-" in path]


def test_a_restart_begins_with_the_step_that_failed() -> None:
    xd = Cluster(TWO, "c1")
    number = xd.order(action="launch")
    xd.report("a", "COMPLETED", exit=0)
    xd.report("b", "FAILED", exit=3, error="no disk")
    assert (xd.execution(number).status, xd.execution(number).steps["b"].error) == ("FAILED", "no disk")
    again = xd.order(action="restart", execution=number)
    assert xd.running() == {"b": ("c1", again, False)}
    assert xd.execution(again).steps["a"].execution == number
    xd.report("b", "COMPLETED", exit=0)
    assert (xd.execution(again).status, xd.execution(number).restarted_by) == ("COMPLETED", again)
    for refused in (number, again, 99):
        asked = xd.order(action="restart", execution=refused)
        assert execution_path(asked) not in xd.tree.nodes


HANDLED = "a:timestampfile | FAILED = mend:timestampfile | ODD = $STOP || b:timestampfile"


@pytest.mark.parametrize("leader", ["the same", "the next"])
def test_a_transition_leads_on_and_a_restart_goes_on_there(leader: str) -> None:
    xd = Cluster(HANDLED, "c1", "c2", "c3")
    number = xd.order(action="launch")
    xd.report("a", "FAILED", exit=1)
    if leader == "the next":
        xd.next_leader()
        xd.rounds()
    assert list(xd.running()) == ["mend"]
    xd.report("mend", "FAILED", exit=1, error="no disk")
    assert (xd.execution(number).status, xd.steps(number)) == ("FAILED", {"a": "FAILED", "mend": "FAILED"})
    again = xd.order(action="restart", execution=number)
    assert list(xd.running()) == ["mend"]
    xd.report("mend", "COMPLETED", exit=0)
    assert (xd.execution(again).status, xd.steps(again)) == ("COMPLETED", {"a": "FAILED", "mend": "COMPLETED"})


def test_a_step_whose_exit_status_stopped_the_job_runs_again_at_a_restart() -> None:
    xd = Cluster(HANDLED, "c1", "c2", "c3")
    number = xd.order(action="launch")
    xd.report("a", "COMPLETED", exit=0, exit_status="ODD")
    assert (xd.execution(number).status, xd.execution(number).steps["a"].exit_status) == ("STOPPED", "ODD")
    xd.next_leader()
    again = xd.order(action="restart", execution=number)
    assert list(xd.running()) == ["a"]
    xd.report("a", "COMPLETED", exit=0, exit_status="OTHER")
    failed = xd.execution(again)
    assert (failed.status, failed.steps["a"].error) == ("FAILED", "its exit status 'OTHER' ended the job")
    last = xd.order(action="restart", execution=again)
    xd.report("a", "COMPLETED", exit=0)
    assert list(xd.running()) == ["b"]
    xd.report("b", "COMPLETED", exit=0)
    assert xd.execution(last).status == "COMPLETED"


def test_there_is_one_execution_of_a_job_at_a_time() -> None:
    xd = Cluster(TWO, "c1")
    number = xd.order(action="launch")
    second = xd.order(action="launch")
    assert xd.tree.children(EXECUTIONS) == [f"{number:010}"]
    xd.report("a", "FAILED", exit=1)
    assert execution_path(second) not in xd.tree.nodes
    assert xd.execution(xd.order(action="launch")).status == "STARTED"


@pytest.mark.parametrize("leader", ["the same", "the next"])
def test_a_step_fails_with_its_container_and_moves_only_then(leader: str) -> None:
    xd = Cluster(TWO, "c1", "c2")
    number = xd.order(action="launch")
    xd.report("a", "STARTED")
    xd.depart("c1")
    if leader == "the next":
        xd.next_leader()
    xd.rounds()
    failed = xd.execution(number)
    assert (failed.status, failed.steps["a"].error) == ("FAILED", "container c1 departed while the step ran")
    assert xd.running() == {}
    again = xd.order(action="restart", execution=number)
    assert xd.running() == {"a": ("c2", again, False)}


def test_what_a_container_reported_before_it_departed_counts() -> None:
    xd = Cluster(TWO, "c1", "c2")
    number = xd.order(action="launch")
    xd.depart("c1")
    xd.report("a", "COMPLETED", exit=0)
    assert xd.steps(number)["a"] == "COMPLETED"
    assert xd.running()["b"][0] == "c2"


def test_a_report_that_the_copy_does_not_show_yet_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    xd = Cluster(TWO, "c1", "c2")
    number = xd.order(action="launch")
    path = f"{step_path('c1', 'j', 'a')}/report-{number}"
    xd.tree.put(path, ReportNode(status="COMPLETED", started=1.0, ended=2.0, exit=0))
    xd.depart("c1")
    shown = xd.tree.nodes.pop(path)
    late = xd.tree.commit

    def commit(fence: object, *changes: Any) -> None:
        # ZooKeeper has what the copy lacks.
        xd.tree.nodes[path] = shown
        monkeypatch.setattr(xd.tree, "commit", late)
        late(fence, *changes)

    monkeypatch.setattr(xd.tree, "commit", commit)
    xd.rounds()
    assert xd.steps(number)["a"] == "COMPLETED"


def test_a_stop_waits_for_what_runs() -> None:
    xd = Cluster("<a:timestampfile & b:timestampfile> || c:timestampfile", "c1")
    number = xd.order(action="launch")
    xd.report("a", "COMPLETED", exit=0)
    xd.order(action="stop", execution=number)
    assert (xd.execution(number).status, xd.running()) == ("STOPPING", {"b": ("c1", number, True)})
    xd.report("b", "STOPPED")
    assert (xd.execution(number).status, xd.steps(number)) == ("STOPPED", {"a": "COMPLETED", "b": "STOPPED"})


def test_an_undeployment_ends_the_steps_first() -> None:
    xd = Cluster(TWO, "c1")
    number = xd.order(action="launch")
    xd.order(action="undeploy")
    assert xd.running() == {"a": ("c1", number, True)}
    assert xd.tree.value(f"{nodes.JOB_DEPLOYMENTS}/j", Deployment) is not None
    xd.report("a", "STOPPED")
    assert xd.execution(number).status == "STOPPED"
    assert xd.tree.children(nodes.JOB_DEPLOYMENTS) == []
    assert execution_path(xd.order(action="launch")) not in xd.tree.nodes


def test_without_a_container_a_step_waits() -> None:
    xd = Cluster(TWO)
    number = xd.order(action="launch")
    assert xd.execution(number).status == "STARTING"
    xd.join("c1")
    xd.rounds()
    assert xd.running() == {"a": ("c1", number, False)}


def test_the_history_is_bounded() -> None:
    xd = Cluster("timestampfile", "c1")
    first = xd.order(action="launch")
    xd.report("timestampfile", "COMPLETED", exit=0)
    sample = xd.execution(first)
    for number in range(1_000, 1_000 + MOST_EXECUTIONS):
        xd.tree.put(execution_path(number), sample)
    xd.order(action="launch")
    assert len(xd.tree.children(EXECUTIONS)) == MOST_EXECUTIONS


EVENTS = st.lists(
    st.tuples(st.sampled_from(["end", "fail", "depart", "join", "lead", "restart", "stop"]), st.integers(0, 9)),
    max_size=25,
)


@settings(deadline=None, max_examples=examples(60))
@given(EVENTS)
def test_whatever_happens_no_completed_step_runs_again(events: list[tuple[str, int]]) -> None:
    xd = Cluster("a:timestampfile || <b:timestampfile & c:timestampfile> || d:timestampfile", "c0", "c1")
    latest, joined, completed = xd.order(action="launch"), 2, set[str]()
    for what, which in events:
        running, there = xd.running(), xd.tree.children(nodes.CONTAINERS)
        alive = sorted(label for label, (container, _, _) in running.items() if container in there)
        if what in ("end", "fail") and alive:
            label = alive[which % len(alive)]
            if what == "end":
                assert label not in completed, "it ran again"
                completed.add(label)
            xd.report(label, "COMPLETED" if what == "end" else "FAILED", exit=0)
        elif what == "depart" and there:
            xd.depart(there[which % len(there)])
        elif what == "join":
            xd.join(f"c{joined}")
            joined += 1
        elif what == "lead":
            xd.next_leader()
        elif what == "stop":
            xd.order(action="stop", execution=latest)
        elif what == "restart" and xd.execution(latest).status in ("FAILED", "STOPPED"):
            latest = xd.order(action="restart", execution=latest)
        xd.rounds()
        if xd.execution(latest).status == "COMPLETED":
            assert completed == set("abcd")
            return
    assert {label for label, status in xd.steps(latest).items() if status == "COMPLETED"} == completed
