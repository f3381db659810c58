"""Executes one round in all live processes, stage by stage. The first process leads.

A round goes stage by stage. Each process executes what waits for its tasks there, all at the same time, and what they
emit is distributed again for the stages that follow. So a round is over in all processes, or in none, and a barrier
falls between two rounds by itself.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Protocol

from storm_on_spark.plan.live_homes import Moved, homes_of, moved_from, staying
from storm_on_spark.plan.model import Stage
from storm_on_spark.runtime.bolts.bolt_task import UnsavedError
from storm_on_spark.runtime.bolts.operator import Waiting
from storm_on_spark.runtime.bolts.stage import BatchInfo, Passed, bytes_of
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.live import messages
from storm_on_spark.runtime.live.execution import copied
from storm_on_spark.runtime.live.execution.local_tasks import LocalTasks
from storm_on_spark.runtime.live.execution.small_round import SmallRounds
from storm_on_spark.runtime.live.processes.spreading import Spreading
from storm_on_spark.runtime.reports.report import Failure, TaskMetrics

log = logging.getLogger(__name__)


class GivenUpError(Exception):
    """The tasks can't continue. Everything since the last barrier is executed again from the log."""


class Member(Protocol):
    """Another live process. It takes one request at a time and answers each."""

    def ask(self, question: messages.Question) -> None:
        """Sends a request.

        Raises:
            GivenUpError: it is gone.
        """

    def answer(self) -> messages.Answer:
        """Waits for the answer.

        Raises:
            GivenUpError: it is gone.
        """


class ElsewhereError(Exception):
    """A bolt raised in another process."""


class LiveProcesses:
    """The processes that share the tasks.

    Args:
        worker: this process's instances.
        run: start id and specification, for the others.
        values: the state of all tasks.
        members: the others, with the numbers from 1 on.
        spreading: says which tasks move.

    Raises:
        GivenUpError: one of them is gone, or can't take its tasks.
    """

    def __init__(
        self,
        worker: Worker,
        run: tuple[str, bytes],
        values: Mapping[messages.Key, bytes],
        members: Sequence[Member] = (),
        spreading: Spreading | None = None,
    ) -> None:
        self.size = 1 + len(members)
        self._members = members
        self._spreading = spreading or Spreading(self.size, staying(worker.spec.plan))
        #: What has moved since the start.
        self.moved: Moved = ()
        #: Number of processes, and what has moved -> the process of each task. What was executed by others may be
        #: executed again by this one.
        self._homes = lru_cache(maxsize=4)(partial(homes_of, worker.spec.plan))
        shares: list[dict[messages.Key, bytes]] = [{} for _ in range(self.size)]
        homes = self._homes(self.size)
        for key, value in values.items():
            shares[homes.get(key[0], 0)][key] = value
        for member, share in zip(members, shares[1:], strict=True):
            member.ask(messages.Take(*run, share))
        self._own = LocalTasks(worker, shares[0])
        #: Of the changes that were taken last: what came late, and what others still owe.
        self._late: dict[messages.Key, bytes | None] = {}
        self._owing: list[Member] = []
        #: Whether the state of all tasks was so small, when it was saved last, that it can be saved with each round.
        self.is_small = False
        self._answers(self._members)

    @property
    def small(self) -> SmallRounds:
        """Executes small rounds of all tasks, where they are in one process."""
        return self._own.small

    def executions(
        self, stage: Stage, by_task: Waiting, info: BatchInfo, homes: tuple[int, Moved]
    ) -> Iterator[Iterable[Passed]]:
        """Yields what the executions of a stage emit.

        Args:
            stage: of the plan's operator.
            by_task: the chunks for it; taken out.
            info: which round.
            homes: between how many processes the tasks are, and which have moved; when this is executed again, it is
                what was so at the first time.

        Raises:
            GivenUpError: a process is gone.
            UnsavedError: a bolt raised, in any process.
        """
        if homes[0] == 1:
            yield from self._own.executions(stage, by_task, info)
            return
        home_of = self._homes(*homes)
        parts: dict[int, Waiting] = defaultdict(dict)
        for task in list(by_task):
            parts[home_of.get(task, 0)][task] = by_task.pop(task)
        asked = {number: list(parts[number]) for number in sorted(parts) if 0 < number < self.size}
        for number in asked:
            bodies = {task: [bytes_of(body) for _, body in chunks] for task, chunks in parts.pop(number).items()}
            self._members[number - 1].ask(messages.Execute(stage.index, bodies, replace(info, partition=number)))
        raised: UnsavedError | None = None
        try:
            for number in sorted(parts):
                tasks, started = list(parts[number]), time.perf_counter()
                own = self._own.executions(stage, parts[number], replace(info, partition=number))
                found = [list(chunks) for chunks in own]
                self._spreading.note(stage.index, number, tasks, time.perf_counter() - started)
                yield from found
        except UnsavedError as error:
            raised = error  # the others have to be heard first
        for number, tasks in asked.items():
            answer = self._members[number - 1].answer()
            if isinstance(answer, messages.Raised):
                raised = UnsavedError()
                raised.__cause__ = ElsewhereError(answer.error)
            elif isinstance(answer, messages.Emitted):
                self._spreading.note(stage.index, number, tasks, answer.secs)
                yield [chunk.with_header(body) for body in answer.bodies]
            else:
                raise _trouble(answer)
        if raised is not None:
            raise raised

    def better_homes(self, busy: Mapping[int, float], secs: float) -> dict[int, int] | None:
        """Returns the process of each task if another one is clearly better for some of them.

        Args:
            busy: seconds that each task has executed since the last barrier.
            secs: since then.
        """
        return self._spreading.at_barrier(busy, secs, self._homes(self.size, self.moved)) if self._members else None

    def move(self, homes: Mapping[int, int]) -> None:
        """Hands tasks over from process to process. All changes of their state must have been taken, also late ones.

        Args:
            homes: the process of each task from here on.

        Raises:
            GivenUpError: a process is gone.
        """
        started, former = time.perf_counter(), self._homes(self.size, self.moved)
        leaving: list[list[int]] = [[] for _ in range(self.size)]
        for task, home in former.items():
            if homes[task] != home:
                leaving[home].append(task)
        givers = [(member, tasks) for member, tasks in zip(self._members, leaving[1:], strict=True) if tasks]
        for member, tasks in givers:
            member.ask(messages.Give(tasks))
        values = self._own.give(leaving[0])
        for given in self._answers([member for member, _ in givers]):
            assert isinstance(given, messages.Given), given
            values |= given.values
        shares: list[dict[messages.Key, bytes]] = [{} for _ in range(self.size)]
        for key, value in values.items():
            shares[homes[key[0]]][key] = value
        takers = [(member, share) for member, share in zip(self._members, shares[1:], strict=True) if share]
        for member, share in takers:
            member.ask(messages.Receive(share))
        self._own.receive(shares[0])
        self._answers([member for member, _ in takers])
        self.moved = moved_from(self._homes(self.size, ()), homes)
        self._spreading.took(time.perf_counter() - started)
        self._tell(former, homes)

    def _tell(self, former: Mapping[int, int], homes: Mapping[int, int]) -> None:
        component_of = self._own.worker.wiring.component_of
        told = (
            f"{component_of[task]} {task} from {former[task] + 1} to {home + 1}"
            for task, home in homes.items()
            if home != former[task]
        )
        log.info("tasks move between the %d live processes, as some have more to do: %s", self.size, ", ".join(told))

    def save(self, number: int) -> list[TaskMetrics | Failure]:
        """Saves the state of all tasks and returns their reports. See `LocalTasks.save`."""
        reports, _ = self._save(number, take=False)
        return reports

    def save_and_take(
        self, number: int, *, later: bool = False
    ) -> tuple[list[TaskMetrics | Failure], dict[messages.Key, bytes | None]]:
        """Saves the state of all tasks; returns their reports and all changes since the last call.

        Args:
            number: see `LocalTasks.save`.
            later: whether some of it may be left to `late_changes`, which must be called then before anything is saved
                again.
        """
        return self._save(number, take=True, later=later)

    def _save(
        self, number: int, *, take: bool, later: bool = False
    ) -> tuple[list[TaskMetrics | Failure], dict[messages.Key, bytes | None]]:
        for member in self._members:
            member.ask(messages.Save(number, take, later and copied.trusted))
        reports = self._own.save(number, later=later)
        changes = self._own.take_changes() if take else {}
        self.is_small = self._own.is_small
        answers = self._answers(self._members)
        for member, saved in zip(self._members, answers, strict=True):
            assert isinstance(saved, messages.Saved), saved
            reports += saved.reports
            changes.update(saved.changes)
            self.is_small &= saved.small
            if saved.owes:
                self._owing.append(member)
        return reports, changes

    def late_changes(self, *, wait: bool) -> dict[messages.Key, bytes | None] | None:
        """Returns the changes that `save_and_take` left out ({} if none), or None if some are not ready.

        Args:
            wait: whether to wait for it.

        Raises:
            GivenUpError: a process is gone.
            StormError: a state can't be saved.
        """
        for member in self._owing:
            member.ask(messages.GiveLate(wait))
        own = self._own.late_changes(wait=wait)
        answers = self._answers(self._owing)
        self._late.update(own or {})
        owing = []
        for member, saved in zip(self._owing, answers, strict=True):
            assert isinstance(saved, messages.Saved), saved
            self._late.update(saved.changes)
            if saved.owes:
                owing.append(member)
        self._owing = owing
        if own is None or owing:
            return None
        late, self._late = self._late, {}
        return late

    def go_back(self) -> None:
        """Restores state and tasks as of the last call of `save_and_take`."""
        for member in self._members:
            member.ask(messages.GoBack())
        self._own.go_back()
        self._answers(self._members)

    def close(self) -> None:
        """Ends the copies that are still taking snapshots."""
        self._own.close()

    def _answers(self, members: Sequence[Member]) -> list[messages.Answer]:
        found = [member.answer() for member in members]
        for answer in found:
            if isinstance(answer, messages.Trouble):
                if answer.of_copy:
                    copied.distrust()
                raise _trouble(answer)
        return found


def _trouble(answer: messages.Answer) -> GivenUpError:
    return GivenUpError(
        answer.error if isinstance(answer, messages.Trouble) else f"a live process answered {answer!r:.200}"
    )
