"""Rounds on the disk, and that what was executed in several processes is executed again as it was."""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from endless import Endless
from live_simulation import outcomes
from stormtest import make_worker
from waiting import eventually

from storm_on_spark.api import BaseBasicBolt, FailedException, Fields, TopologyBuilder
from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.api.info import RepetitionInfo
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.watching.at_work import read_repetition
from storm_on_spark.runtime.bolts.watching.stall import MainThreadWatch
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.live.execution.round_files import names_in, read_lines
from storm_on_spark.runtime.live.execution.rounds import (
    ROUNDS,
    Round,
    RoundLog,
    begin_rounds,
    last_executed_ms,
    read_rounds,
)
from storm_on_spark.runtime.live.execution.rounds import rounds_of as folder_of
from storm_on_spark.runtime.live.execution.tasks import LiveTasks
from storm_on_spark.runtime.live.messages import Adopt, Answer, Question
from storm_on_spark.runtime.live.processes.member import MemberTasks
from storm_on_spark.runtime.live.processes.spreading import Spreading
from storm_on_spark.runtime.spouts.opening import open_spout_task
from storm_on_spark.runtime.storage import Folder, LocalStorage, Storage, within
from storm_on_spark.runtime.storage.claims import OWNERS, Claim, make_claim, successor
from storm_on_spark.runtime.tracking.acker import ACKED
from storm_on_spark.testing.storage.faulty import Call, Fault, FaultyStorage

TOKEN = b"token"


@pytest.fixture(params=["directory", "store"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    return tmp_path if request.param == "directory" else LocalStorage(tmp_path)


def log_in(folder: Folder, *tokens: bytes) -> RoundLog:
    log = RoundLog(folder, sync=False)
    log.follow(tokens)
    return log


def ended(log: RoundLog) -> None:
    log.finish()
    log.close()


def test_rounds_are_read_as_they_were_written(folder: Folder) -> None:
    moved = (4, 1), (6, 0)
    rounds = [
        Round(7, Offset({3: 120}, 500), saved=False, processes=2),
        Round(8, Offset({3: 130}, 510), saved=False, processes=2),
        Round(10, Offset({3: 140}, 520), saved=False, processes=2, moved=moved),
        Round(11, Offset({3: 150}, 530), saved=False, processes=2, moved=moved),
        Round(12, Offset({3: 150}, 540), saved=False, processes=2),
        Round(13, Offset({3: 160}, 550), saved=True),
    ]
    log = log_in(folder, TOKEN)
    for done in rounds:
        log.append(done)
    ended(log)
    assert log.written == log.given == len(rounds)
    assert read_rounds(folder, TOKEN) == rounds
    lines = [json.loads(line) for line in read_lines(folder, TOKEN.hex())]
    assert [len(line) for line in lines] == [4, 4, 5, 4, 4, 4]
    assert lines[3] == [1, 10, 3, 10], "homes are written when they change"


def test_rounds_from_before_tasks_could_move_are_read(tmp_path: Path) -> None:
    end = Offset({3: 120}, 500)
    (tmp_path / TOKEN.hex()).write_text(json.dumps([7, end.to_json(), False, 2]) + "\n[1,10,3,5]\n")
    assert read_rounds(tmp_path, TOKEN) == [Round(7, end, False, 2), Round(8, Offset({3: 125}, 510), False, 2)]


def test_rounds_go_on_in_the_file_of_the_state_that_was_saved_then(folder: Folder) -> None:
    rounds = [
        Round(7, Offset({3: 120}, 500), saved=False),
        Round(8, Offset({3: 130}, 510), saved=False),
        Round(12, Offset({3: 130, 4: 7}, 510), saved=False),
        Round(13, Offset({3: 150, 4: 7}, 511), saved=True),
        Round(14, Offset({3: 150, 4: 9}, 511), saved=False),
    ]
    log = log_in(folder, TOKEN)
    for done in rounds[:3]:
        log.append(done)
    log.follow([TOKEN, b"second"])
    for done in rounds[3:]:
        log.append(done)
    log.finish()
    assert read_rounds(folder, TOKEN) == rounds
    assert read_rounds(folder, b"second") == rounds[3:]
    log.follow([b"second", b"third"])
    log.append(rounds[0])
    ended(log)
    eventually(lambda: set(names_in(folder)) == {b"second".hex(), b"third".hex()}, "only the last two are left")
    # Another process goes on: it finds that the third follows the second.
    ended(log_in(folder, b"second", b"fourth"))
    assert read_rounds(folder, b"second") == [*rounds[3:], rounds[0]]


def test_until_when_tuples_were_executed_is_known_without_the_state(folder: Folder) -> None:
    assert last_executed_ms(folder, Offset()) is None
    log = log_in(folder, TOKEN)
    log.append(Round(7, Offset({3: 120}, 500), saved=False))
    log.follow([TOKEN, b"second"])
    log.append(Round(8, Offset({3: 120}, 700), saved=False))
    ended(log)
    assert last_executed_ms(folder, Offset()) == 700
    assert last_executed_ms(folder, Offset({3: 120}, 500)) == 700, "a timer's round is behind it"
    assert last_executed_ms(folder, Offset({3: 120}, 700)) is None


def test_a_line_that_was_not_written_whole_does_not_count(tmp_path: Path) -> None:
    done = Round(7, Offset({3: 120}, 500), saved=False)
    log = log_in(tmp_path, TOKEN)
    log.append(done)
    log.close()
    file = tmp_path / TOKEN.hex()
    file.write_bytes(file.read_bytes() + b"[1,2,3,")
    assert read_rounds(tmp_path, TOKEN) == [done]
    log.follow([TOKEN, b"second"])
    log.append(done)
    log.close()
    assert read_rounds(tmp_path, TOKEN) == [done, done]


def test_damaged_rounds_are_an_error_that_names_the_file(folder: Folder, tmp_path: Path) -> None:
    file = tmp_path / TOKEN.hex() / "00000000-0123456789ab" if isinstance(folder, Storage) else tmp_path / TOKEN.hex()
    file.parent.mkdir(exist_ok=True)
    for line in (b"[1,2]", b"{}", b"\xff", b'"no token"'):
        file.write_bytes(line + b"\n")
        with pytest.raises(CheckpointError, match=f"{TOKEN.hex()} is damaged"):
            read_rounds(folder, TOKEN)


def rounds_of(count: int) -> list[Round]:
    return [Round(number, Offset({3: 100 * number}, 10 * number), saved=False) for number in range(1, count + 1)]


class Held:
    """A store whose writes wait until they are let through."""

    def __init__(self, folder: Path) -> None:
        self.fails = False
        self.through = threading.Semaphore(0)
        self.storage = FaultyStorage(LocalStorage(folder), self.fault)

    def fault(self, call: Call) -> Fault | None:
        if call.method != "create":
            return None
        assert self.through.acquire(timeout=30)
        return Fault.REFUSED if self.fails else None


def test_what_waits_for_a_store_is_one_object(tmp_path: Path) -> None:
    held, heard = Held(tmp_path), threading.Semaphore(0)
    log = RoundLog(held.storage, False, heard.release)
    log.follow([TOKEN])
    rounds = rounds_of(5)
    log.append(rounds[0])
    eventually(lambda: any(call.method == "create" for call in held.storage.calls), "it is being written")
    for done in rounds[1:]:
        log.append(done)
    assert (log.written, log.given) == (0, 5)
    held.through.release()
    assert heard.acquire(timeout=30)
    assert log.written == 1
    held.through.release()
    assert heard.acquire(timeout=30)
    ended(log)
    assert log.written == 5
    assert len(held.storage.list_folder(deep=True)) == 2
    assert read_rounds(held.storage, TOKEN) == rounds


def test_a_round_that_a_store_refuses_is_an_error_and_so_is_each_later_one(tmp_path: Path) -> None:
    held, heard = Held(tmp_path), threading.Semaphore(0)
    held.fails = True
    held.through.release()
    log = RoundLog(held.storage, False, heard.release)
    log.follow([TOKEN])
    first, second = rounds_of(2)
    log.append(first)
    assert heard.acquire(timeout=30)
    for call in (lambda: log.written, lambda: log.append(second), log.finish):
        with pytest.raises(OSError, match="refused"):
            call()
    log.close()
    assert read_rounds(held.storage, TOKEN) == []


def test_a_store_that_fails_in_another_way_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(tmp_path)
    monkeypatch.setattr(storage, "create", lambda *_: 1 // 0)
    log = log_in(storage, TOKEN)
    log.append(rounds_of(1)[0])
    with pytest.raises(OSError, match="ZeroDivisionError"):
        log.finish()
    log.close()


def test_objects_of_others_are_passed_over(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    for name in ("x", f"{TOKEN.hex()}/x-y", f"{TOKEN.hex()}/99999999-x", "other/00000000-0123456789ab"):
        storage.create(name, b"[1,2]\n")
    log = log_in(storage, TOKEN)
    [done] = rounds_of(1)
    log.append(done)
    ended(log)
    assert read_rounds(storage, TOKEN) == [done]


def test_nothing_is_written_to_a_store_after_the_end_but_what_was_being_written(tmp_path: Path) -> None:
    held = Held(tmp_path)
    log = RoundLog(held.storage, False)
    log.follow([TOKEN])
    first, second = rounds_of(2)
    log.append(first)
    eventually(lambda: any(call.method == "create" for call in held.storage.calls), "it is being written")
    log.append(second)
    closing = threading.Thread(target=log.close)
    closing.start()
    held.through.release(2)
    closing.join(30)
    assert read_rounds(held.storage, TOKEN) == [first]


def test_what_a_writer_adds_after_the_next_one_began_does_not_count(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    first, second, third, late = rounds_of(4)
    old = log_in(storage, TOKEN)
    old.append(first)
    old.finish()
    new = log_in(storage, TOKEN)
    new.append(second)
    new.finish()
    old.append(late)
    old.finish()
    new.append(third)
    ended(new)
    ended(old)
    assert read_rounds(storage, TOKEN) == [first, second, third]


def test_the_next_owner_has_the_rounds_of_the_one_before_but_none_that_it_adds_later(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    first, second, third, late = rounds_of(4)
    planned = first.end

    def is_ours(owner: int) -> bool:
        return successor(within(storage, OWNERS), Claim(owner, "")) is None

    def log_of(owner: int, *tokens: bytes) -> RoundLog:
        log = RoundLog(folder_of(storage, owner), False, is_ours=lambda: is_ours(owner))
        log.follow(tokens)
        return log

    def claimed(token: str) -> int:
        return make_claim(within(storage, OWNERS), token, {})[0].number

    assert begin_rounds(storage, claimed("0a" * 8), planned) is None
    old = log_of(1, TOKEN)
    old.append(first)
    old.follow([TOKEN, b"second"])
    old.append(second)
    old.finish()
    # It is frozen here, and wakes up when another one has claimed the checkpoint.
    assert claimed("0b" * 8) == 2
    old.append(third)
    with pytest.raises(OSError, match="taken over"):
        old.finish()
    assert begin_rounds(storage, 2, planned) == third.end.clock, "it was written in time, though nobody was told of it"
    again = log_of(1, b"second")
    again.append(late)
    with pytest.raises(OSError, match="taken over"):
        again.finish()
    again.close()
    assert read_rounds(folder_of(storage, 2), TOKEN) == [first, second, third]
    new = log_of(2, b"second", b"third")
    new.append(late)
    ended(new)
    old.close()
    assert read_rounds(folder_of(storage, 2), b"second") == [second, third, late]
    # A third one has what the second one had, even if the first one's folder is there again.
    assert begin_rounds(storage, claimed("0c" * 8), planned) == late.end.clock
    assert read_rounds(folder_of(storage, 3), b"second") == [second, third, late]
    eventually(
        lambda: {one.name for one in storage.list_folder(ROUNDS)} == {f"{ROUNDS}/0000000003.began"}, "it is tidy"
    )


def test_an_owner_that_dies_while_it_copies_rounds_has_left_none(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    first, second = rounds_of(2)
    begin_rounds(storage, 1, first.end)
    log = RoundLog(folder_of(storage, 1), False)
    log.follow([TOKEN])
    for done in (first, second):
        log.append(done)
    ended(log)

    def fault(call: Call) -> Fault | None:
        return Fault.REFUSED if call.method == "put" else None

    with pytest.raises(OSError, match="refused"):
        begin_rounds(FaultyStorage(storage, fault), 2, first.end)
    assert begin_rounds(storage, 3, first.end) == second.end.clock
    assert read_rounds(folder_of(storage, 3), TOKEN) == [first, second]


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


class Looking(BaseBasicBolt):
    """Waits in each round until it is written down how many have been executed again."""

    stateless = True

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def execute(self, tup, collector) -> None:
        if LOOKS is not None:
            LOOKS.append(eventually(lambda: (told := read_repetition(Path(self.folder))) not in LOOKS and told))


LOOKS: list[RepetitionInfo] | None = None


def test_how_many_rounds_have_been_executed_again_is_written_down_until_all_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = TopologyBuilder()
    builder.set_spout("spout", Endless())
    builder.set_bolt("looking", Looking(str(tmp_path))).shuffle_grouping("spout")
    spec = make_worker(builder, {"topology.profile": "realtime"}, partitions=1).spec
    spec = dataclasses.replace(spec, folder=str(tmp_path))
    adopt = Adopt(spec.start_id, spec.dumps(), b"the state before", Offset(), {}, ())
    rounds: list[Round] = []
    live = LiveTasks(Worker(spec), adopt, rounds.append)
    task = spec.plan.components["spout"].tasks[0]
    worker = Worker(spec)
    spout = open_spout_task(
        spec, worker.wiring, worker.context(task), tmp_path / "spouts" / str(task), lambda: 0, lambda: 0.0
    )
    for clock in (1, 2):
        spout.next_tuple(0.0)
        live.take_up_to({task: spout.cut().mark})
        live.execute(clock)
    spout.close()
    end = live.barrier(Offset())
    seen: list[RepetitionInfo] = []
    monkeypatch.setattr(sys.modules[__name__], "LOOKS", seen)
    worker.watch = MainThreadWatch(60, worker.wiring, tmp_path, tmp_path)
    try:
        LiveTasks(worker, adopt).catch_up(rounds, end)
        assert seen == [RepetitionInfo(0, 3), RepetitionInfo(1, 3)], "the third has what came after the rounds"
        eventually(lambda: read_repetition(tmp_path) is None)
    finally:
        worker.watch.close()
