"""Rounds on the disk, and that what was executed in several processes is executed again as it was."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from endless import Endless
from live_simulation import outcomes
from stormtest import make_worker

from storm_on_spark.api import BaseBasicBolt, FailedException, Fields, TopologyBuilder
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.live.execution.rounds import Round, RoundLog, last_executed_ms, read_rounds
from storm_on_spark.runtime.live.execution.tasks import LiveTasks
from storm_on_spark.runtime.live.messages import Adopt, Answer, Question
from storm_on_spark.runtime.live.processes.member import MemberTasks
from storm_on_spark.runtime.live.processes.spreading import Spreading
from storm_on_spark.runtime.spouts.opening import open_spout_task
from storm_on_spark.runtime.tracking.acker import ACKED

TOKEN = b"token"


def test_rounds_are_read_as_they_were_written(tmp_path: Path) -> None:
    moved = (4, 1), (6, 0)
    rounds = [
        Round(7, Offset({3: 120}, 500), saved=False, processes=2),
        Round(8, Offset({3: 130}, 510), saved=False, processes=2),
        Round(10, Offset({3: 140}, 520), saved=False, processes=2, moved=moved),
        Round(11, Offset({3: 150}, 530), saved=False, processes=2, moved=moved),
        Round(12, Offset({3: 150}, 540), saved=False, processes=2),
        Round(13, Offset({3: 160}, 550), saved=True),
    ]
    log = RoundLog(tmp_path, sync=False)
    log.follow([TOKEN])
    for done in rounds:
        log.append(done)
    log.close()
    assert read_rounds(tmp_path, TOKEN) == rounds
    lines = (tmp_path / TOKEN.hex()).read_text().splitlines()
    assert [len(line) for line in map(json.loads, lines)] == [4, 4, 5, 4, 4, 4]
    assert lines[3] == "[1,10,3,10]", "homes are written when they change"


def test_rounds_from_before_tasks_could_move_are_read(tmp_path: Path) -> None:
    end = Offset({3: 120}, 500)
    (tmp_path / TOKEN.hex()).write_text(json.dumps([7, end.to_json(), False, 2]) + "\n[1,10,3,5]\n")
    assert read_rounds(tmp_path, TOKEN) == [Round(7, end, False, 2), Round(8, Offset({3: 125}, 510), False, 2)]


def test_rounds_go_on_in_the_file_of_the_state_that_was_saved_then(tmp_path: Path) -> None:
    rounds = [
        Round(7, Offset({3: 120}, 500), saved=False),
        Round(8, Offset({3: 130}, 510), saved=False),
        Round(12, Offset({3: 130, 4: 7}, 510), saved=False),
        Round(13, Offset({3: 150, 4: 7}, 511), saved=True),
        Round(14, Offset({3: 150, 4: 9}, 511), saved=False),
    ]
    log = RoundLog(tmp_path, sync=False)
    log.follow([TOKEN])
    for done in rounds[:3]:
        log.append(done)
    log.follow([TOKEN, b"second"])
    for done in rounds[3:]:
        log.append(done)
    assert read_rounds(tmp_path, TOKEN) == rounds
    assert read_rounds(tmp_path, b"second") == rounds[3:]
    log.follow([b"second", b"third"])
    log.close()
    assert {file.name for file in tmp_path.iterdir()} == {b"second".hex(), b"third".hex()}


def test_until_when_tuples_were_executed_is_known_without_the_state(tmp_path: Path) -> None:
    folder = tmp_path / "rounds"
    assert last_executed_ms(folder, Offset()) is None
    log = RoundLog(folder, sync=False)
    log.follow([TOKEN])
    log.append(Round(7, Offset({3: 120}, 500), saved=False))
    log.follow([TOKEN, b"second"])
    log.append(Round(8, Offset({3: 120}, 700), saved=False))
    log.close()
    assert last_executed_ms(folder, Offset()) == 700
    assert last_executed_ms(folder, Offset({3: 120}, 500)) == 700, "a timer's round is behind it"
    assert last_executed_ms(folder, Offset({3: 120}, 700)) is None


def test_a_line_that_was_not_written_whole_does_not_count(tmp_path: Path) -> None:
    done = Round(7, Offset({3: 120}, 500), saved=False)
    log = RoundLog(tmp_path, sync=False)
    log.follow([TOKEN])
    log.append(done)
    log.close()
    file = tmp_path / TOKEN.hex()
    file.write_bytes(file.read_bytes() + b"[1,2,3,")
    assert read_rounds(tmp_path, TOKEN) == [done]
    log.follow([TOKEN, b"second"])
    log.append(done)
    log.close()
    assert read_rounds(tmp_path, TOKEN) == [done, done]


class Relay(BaseBasicBolt):
    """Has no state, so several of its tasks are executed together: those of one process."""

    def execute(self, tup, collector) -> None:
        collector.emit([tup["text"]])

    def declare_output_fields(self, declarer) -> None:
        declarer.declare(Fields("text"))


class EveryThird(BaseBasicBolt):
    """Fails each third tuple that it sees."""

    def prepare(self, conf, context) -> None:
        self.seen = 0

    def execute(self, tup, collector) -> None:
        self.seen += 1
        if self.seen % 3 == 0:
            raise FailedException


class Neighbour:
    """Another process, in this one."""

    def __init__(self, worker: Worker) -> None:
        self.holder = MemberTasks(lambda *_: worker)
        self.answers: list[Answer] = []

    def ask(self, question: Question) -> None:
        self.answers.append(self.holder.answer(question))

    def answer(self) -> Answer:
        return self.answers.pop()


class MovesAll(Spreading):
    """Moves all tasks that may move, at each barrier."""

    def __init__(self, acker_tasks: Sequence[int]) -> None:
        super().__init__(2)
        self.acker_tasks = acker_tasks

    def at_barrier(self, busy: Mapping[int, float], secs: float, homes: Mapping[int, int]) -> dict[int, int]:
        assert set(busy) < set(homes), "it is told what tasks have cost"
        assert self.costs(), "it has heard what stages have cost"
        return {task: home if task in self.acker_tasks else 1 - home for task, home in homes.items()}


@pytest.mark.parametrize("moves", [False, True])
def test_one_process_ends_messages_as_two_did(tmp_path: Path, moves: bool) -> None:
    builder = TopologyBuilder()
    builder.set_spout("spout", Endless())
    builder.set_bolt("relay", Relay(), 4).shuffle_grouping("spout")
    builder.set_bolt("next", Relay(), 4).shuffle_grouping("relay")
    builder.set_bolt("third", EveryThird(), 2).shuffle_grouping("next")
    spec = make_worker(builder, {"topology.profile": "realtime", "topology.workers": 2}, partitions=1).spec
    spec = dataclasses.replace(spec, folder=str(tmp_path))
    adopt = Adopt(spec.start_id, spec.dumps(), b"the state before", Offset(), {}, ())
    rounds: list[Round] = []
    spreading = MovesAll(spec.plan.acker_tasks) if moves else None
    live = LiveTasks(Worker(spec), adopt, rounds.append, [Neighbour(Worker(spec))], spreading)
    task = spec.plan.components["spout"].tasks[0]
    worker = Worker(spec)
    log = tmp_path / "spouts" / str(task)
    spout = open_spout_task(spec, worker.wiring, worker.context(task), log, lambda: 0, lambda: 0.0)
    for clock in range(1, 8):
        for _ in range(clock):
            spout.next_tuple(0.0)
        live.take_up_to({task: spout.cut().mark})
        live.execute(clock)
        if clock == 4:
            live.barrier(Offset())
    spout.close()
    end = live.barrier(Offset())
    told = outcomes(live.cut(adopt.token, Offset(), end).rows)
    assert 0 < sum(code == ACKED for code in told.values()) < len(told) == 28

    def again(rounds: Sequence[Round]) -> dict[int, int]:
        return outcomes(LiveTasks(Worker(spec), adopt).catch_up(rounds, end).rows)

    assert again(rounds) == told
    alone = [done._replace(processes=1, moved=()) for done in rounds]
    assert again(alone) != told, "the number of processes makes a difference here"
    assert [bool(done.moved) for done in rounds] == [moves and done.end.clock > 4 for done in rounds]
    if moves:
        unmoved = [done._replace(moved=()) for done in rounds]
        assert again(unmoved) != told, "it makes a difference which tasks have moved"
