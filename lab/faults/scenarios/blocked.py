"""A spout that blocks in `next_tuple`, beside others that go on."""

from __future__ import annotations

import time

from lab.faults.gates import closed, gate, waiting
from lab.faults.run import Run
from lab.faults.scenarios.pauses import TIMEOUT_SECS
from lab.load import ledger
from lab.suite.processes import wait_for
from lab.suite.scenario import ScenarioError
from storm_on_spark.testing import kill_one

STALL_SECS = 5
BLOCKED_SECS = 2.4 * STALL_SECS
"""More than twice the time after which a bolt counts as stalled, and than messages have."""
_WORKS_ON_SECS = 60.0
_TASKS = (0, 1)


def spout(run: Run, times: int) -> None:
    """Blocks one task of the spout; meanwhile kills a live process, after which the other task goes on.

    Messages of the other task that wait for a partner of the blocked one time out, and are acked without it.
    """
    run.gates = run.folder / "gates"
    run.gates.mkdir()
    gates = [gate(run.gates, task) for task in _TASKS]
    order, roles = run.shuffled(_TASKS), run.shuffled(["process", "member"])
    run.start()
    for number in run.moments(times, BLOCKED_SECS):
        task, role = order[number % len(order)], roles[number % len(roles)]
        with closed(gates[task]):
            host = wait_for(lambda task=task: waiting(gates[task]), f"task {task} of the spout waits")  # type: ignore[misc]
            at = time.monotonic_ns()
            killed = kill_one(lambda role=role: run.live_processes(role), "live process")  # type: ignore[misc]
            died = time.monotonic_ns()
            secs = wait_for(lambda: _others(run, task, died), "the other task goes on", _WORKS_ON_SECS)  # noqa: B023
            time.sleep(max(0.0, BLOCKED_SECS - (time.monotonic_ns() - at) / 1e9))
            still = waiting(gates[task])
            over = time.monotonic_ns()
        emits = ledger.read(run.ledger, ledger.EMITS)
        emitted = int(((emits["time"] > at) & (emits["time"] < over) & (emits["number"] % len(_TASKS) == task)).sum())
        if still != host or emitted:
            raise ScenarioError(f"task {task} of the spout in process {host} did not block: {still}, {emitted} emitted")
        proof = (
            f"its host {host[0]} waited for {(over - at) / 1e9:.0f} s and emitted nothing; live process {killed} was "
            f"killed, and after {secs:.1f} s messages of the other task were acked"
        )
        run.injected(f"task {task} of the spout blocked", proof, over)


def _others(run: Run, blocked: int, after: int) -> float | None:
    return ledger.resumed(run.ledger, after, [task for task in _TASKS if task != blocked])


CONF = {"topology.task.stall.secs": STALL_SECS, "topology.message.timeout.secs": TIMEOUT_SECS}
"""Of its topology."""
