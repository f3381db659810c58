"""Which live process executes which task, by what the tasks have cost: pure.

A round waits at each stage for the process that takes longest there. So its time is the sum of these, and each stage is
spread for itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

Costs = Mapping[int, Mapping[int, float]]
"""Stage -> task -> seconds."""

_BARRIERS: Final = 3
"""How many barriers pass before tasks may move, or move again."""
_REST: Final = 20
"""How many times as long as a move took must pass before the next one."""
_BUSY: Final = 0.5
"""The part of that time that the longest processes must have taken, or nothing is moved."""
_LESS: Final = 0.2
"""The part of what they took that must be saved."""
_LESS_IN_STAGE: Final = 0.05
"""The part of it that a stage must save, or its tasks stay."""
_UNEVEN: Final = 1.05
"""How much more than its even share a process may have before a task has to leave it."""


class Spreading:
    """Measures what the tasks of a run cost, and says where they are to be executed.

    Args:
        processes: number of live processes.
        fixed: tasks that stay where they are.
    """

    def __init__(self, processes: int, fixed: Collection[int] = ()) -> None:
        self._processes = processes
        self._fixed = fixed
        #: How long the last move took.
        self._move_secs = 0.0
        self._forget()

    def _forget(self) -> None:
        #: By stage and process: how long it took, and for which tasks.
        self._spent: defaultdict[tuple[int, int], float] = defaultdict(float)
        self._fed: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        #: By task: what the bolt alone took.
        self._busy: defaultdict[int, float] = defaultdict(float)
        self._secs, self._barriers = 0.0, 0

    def note(self, stage: int, process: int, tasks: Iterable[int], secs: float) -> None:
        """Notes how long a process took to execute a stage.

        Args:
            stage: its index.
            process: its number.
            tasks: for which it had chunks. What is fused with them is executed with them.
            secs: all that it took, with unpacking and packing.
        """
        self._spent[stage, process] += secs
        self._fed[stage, process].update(tasks)

    def took(self, secs: float) -> None:
        """Notes how long a move took, while messages waited."""
        self._move_secs = secs

    def at_barrier(self, busy: Mapping[int, float], secs: float, homes: Mapping[int, int]) -> dict[int, int] | None:
        """Returns the process of each task from here on; None if they stay.

        Args:
            busy: seconds that each task has executed since the last barrier.
            secs: since then.
            homes: the present process of each task.
        """
        for task, spent in busy.items():
            self._busy[task] += spent
        self._secs += secs
        self._barriers += 1
        if self._barriers < _BARRIERS or self._secs < _REST * self._move_secs:
            return None
        found = better_homes(self.costs(), homes, self._processes, self._secs, self._fixed)
        self._forget()
        return found

    def costs(self) -> Costs:
        """Returns what each task has cost: its part of what its process took for the stage."""
        found: defaultdict[int, dict[int, float]] = defaultdict(dict)
        for (stage, process), spent in self._spent.items():
            tasks = self._fed[stage, process]
            whole = sum(self._busy[task] for task in tasks)
            for task in tasks:
                found[stage][task] = spent * (self._busy[task] / whole if whole else 1 / len(tasks))
        return found


def better_homes(
    costs: Costs, homes: Mapping[int, int], processes: int, secs: float, fixed: Collection[int] = ()
) -> dict[int, int] | None:
    """Returns homes with which rounds take clearly less time; None if there are none, or little was to be done.

    Args:
        costs: of the tasks.
        homes: the present process of each task.
        processes: how many there are.
        secs: in which the tasks have cost that.
        fixed: tasks that stay where they are.

    Example:
        >>> better_homes({1: {4: 6.0, 5: 0.5, 6: 3.0, 7: 0.5}}, {4: 0, 5: 1, 6: 0, 7: 1}, processes=2, secs=10.0)
        {4: 0, 5: 1, 6: 1, 7: 1}
    """
    before = longest(costs, homes, processes)
    if before <= _BUSY * secs:
        return None
    found = dict(homes)
    for stage, tasks in costs.items():
        spread = _spread(tasks, homes, processes, fixed)
        saved = longest({stage: tasks}, homes, processes) - longest({stage: tasks}, spread, processes)
        if saved >= _LESS_IN_STAGE * before:
            found |= spread
    return found if longest(costs, found, processes) <= (1 - _LESS) * before else None


def longest(costs: Costs, homes: Mapping[int, int], processes: int) -> float:
    """Returns how long the stages take, one after the other, each as long as its longest process."""
    return sum(max(_loads(tasks, homes, processes)) for tasks in costs.values())


def _loads(tasks: Mapping[int, float], homes: Mapping[int, int], processes: int) -> list[float]:
    loads = [0.0] * processes
    for task, cost in tasks.items():
        loads[homes[task]] += cost
    return loads


def _spread(
    tasks: Mapping[int, float], homes: Mapping[int, int], processes: int, fixed: Collection[int]
) -> dict[int, int]:
    """Spreads the tasks of a stage: the longest first, each where it is, or where there is least if that is full."""
    most = _UNEVEN * max(sum(tasks.values()) / processes, *tasks.values())
    loads, found = [0.0] * processes, {}
    for task in sorted(tasks, key=lambda task: (task not in fixed, -tasks[task], task)):
        home = homes[task]
        if task not in fixed and loads[home] + tasks[task] > most:
            home = loads.index(min(loads))
        loads[home] += tasks[task]
        found[task] = home
    return found
