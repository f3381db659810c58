"""The topology with all that can go wrong, with a live process that executes it between micro-batches, and dies."""

from __future__ import annotations

import contextlib
import dataclasses
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from simulation import Simulation

from storm_on_spark.plan.live_homes import processes_of
from storm_on_spark.plan.model import Operator
from storm_on_spark.runtime.batches.live_process import Status
from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.bolts.stage import BatchInfo, Row
from storm_on_spark.runtime.bolts.worker import Worker
from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.chunk import Chunk, Kind
from storm_on_spark.runtime.live.conduct import BEGINNING, NOBODY, caught_up, micro_batch
from storm_on_spark.runtime.live.execution.rounds import Round, begin_rounds, is_before, read_rounds, rounds_of
from storm_on_spark.runtime.live.execution.small_round import SmallRounds
from storm_on_spark.runtime.live.execution.tasks import LiveTasks
from storm_on_spark.runtime.live.messages import Adopt, Answer, Cut, Give, Key, Question, Receive
from storm_on_spark.runtime.live.processes.live_processes import GivenUpError
from storm_on_spark.runtime.live.processes.member import MemberTasks
from storm_on_spark.runtime.live.processes.spreading import Spreading
from storm_on_spark.runtime.live.processes.told_rounds import ToldRounds
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.spouts.live_line import LineChanged
from storm_on_spark.runtime.spouts.log import Mark
from storm_on_spark.runtime.spouts.messages import Acked, Executed, GoLive, Settle, Written
from storm_on_spark.runtime.state.keyvalue.store import MemoryStore
from storm_on_spark.runtime.storage import Storage, as_storage, inside
from storm_on_spark.runtime.storage.claims import OWNERS, make_claim
from storm_on_spark.testing.simulated import SimulatedSpark
from storm_on_spark.testing.simulated.host import SimulatedHost

FATES = "lives on", "dies at once", "dies after a round"


class AnyHomes(Spreading):
    """Moves tasks at any barrier to any process, whatever they have cost; but no ackers."""

    def __init__(self, live: Live, processes: int) -> None:
        super().__init__(processes)
        self.live, self.processes = live, processes

    def at_barrier(self, busy: Mapping[int, float], secs: float, homes: Mapping[int, int]) -> dict[int, int] | None:
        random = self.live.spark.random
        if random.random() >= self.live.spark.moves:
            return None
        self.live.moved = True
        movable = sorted(homes.keys() - set(self.live.spark.spec.plan.acker_tasks))
        return {**homes, **{task: random.choice([homes[task], random.randrange(self.processes)]) for task in movable}}


class SimulatedMember:
    """A further live process in the test's own; it may die when it is asked, before or after it did what it was told.

    Args:
        live: the first one.
    """

    def __init__(self, live: Live) -> None:
        self.live = live
        self.holder = MemberTasks(lambda *_: Worker(live.spark.spec))
        self.said: list[bytes] = []

    def ask(self, question: Question) -> None:
        self.perhaps_die(moves=isinstance(question, (Give, Receive)))
        asked: Question = pickle.loads(pickle.dumps(question, 5))
        self.said.append(pickle.dumps(self.holder.answer(asked), 5))
        self.live.asked[type(question).__name__] += 1

    def answer(self) -> Answer:
        self.perhaps_die()
        [said] = self.said
        self.said.clear()
        found: Answer = pickle.loads(said)
        self.live.answered[type(found).__name__] += 1
        return found

    def perhaps_die(self, moves: bool = False) -> None:
        spark = self.live.spark
        spark.until_death -= 1
        if moves and spark.member_deaths and spark.random.random() < 0.1:
            spark.fates["member, within a move"] += 1
            spark.until_death = 0
        if spark.member_deaths and spark.until_death <= 0:
            spark.until_death = spark.random.randrange(20, 150)
            self.live.lost += 1
            raise GivenUpError("killed")


class Live:
    """A live process in the test's own."""

    path = Path("live")

    def __init__(self, spark: LiveSpark) -> None:
        self.spark = spark
        self.tasks: LiveTasks | None = None
        self.worker: Worker | None = None
        self.told = ToldRounds()
        self.given_up: list[str] = []
        self.ended = False
        self.cuts = self.rounds = self.early = 0
        #: Of the other processes: what they were asked, and how often one died.
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.lost = 0
        #: Whether tasks have moved at this barrier.
        self.moved = False

    # --- what the coordinator and workers ask ---

    def look(self, clock_ms: int, clock_at: float) -> Status:
        return Status(1, self.tasks is not None)

    def let_go(self) -> None:
        """Nobody waits here."""

    def barrier(self, start: Offset, written: Mapping[int, Mark]) -> Offset | None:
        self.guarded(lambda tasks: tasks.take_up_to(written))
        if self.tasks is not None and self.tasks.behind:
            self.round()
        self.moved = False
        end = self.guarded(lambda tasks: tasks.barrier(start))
        if end is not None:
            self.told.follow(self.tasks.tokens)
        if self.moved and self.tasks is not None:
            self.suffer_after_a_move()
        return end

    def suffer_after_a_move(self) -> None:
        """Ends at once, or after rounds with the new homes, or lives on."""
        spark = self.spark
        fates = FATES if spark.deaths else FATES[:1]
        fate = min(spark.random.sample(fates, len(fates)), key=lambda fate: (spark.fates[fate], fate == "lives on"))
        spark.fates[fate] += 1
        if fate == "dies after a round":
            spark.emit()
            self.round()
        if fate != "lives on":
            self.die()

    def fetch(self, token: bytes | None, start: Offset, end: Offset) -> Cut | None:
        found = None if self.tasks is None or token is None else self.tasks.cut(token, start, end)
        self.cuts += found is not None
        if found is None and token is not None and self.tasks is not None:
            self.die()  # as a live process does: the worker executes the log, up to the last round that it finds
        return found

    def listens(self) -> bool:
        return not self.ended and self.spark.random.random() < 0.8

    def start(self, processes: int) -> None:
        """Nothing to start."""

    def adopt(self, adopt: Adopt) -> bool:
        self.worker = Worker(self.spark.spec)
        members = [SimulatedMember(self) for _ in range(processes_of(self.spark.spec.plan) - 1)]
        self.tasks = None
        try:
            homes = AnyHomes(self, 1 + len(members)) if self.spark.moves and members else None
            self.tasks = LiveTasks(self.worker, adopt, self.told.note, members, homes)
        except GivenUpError:
            self.die()
            return False
        self.told.open(self.worker, self.tasks.tokens)
        for host in self.spark.hosts:
            host.line_changed(self, on=True)
        return True

    # --- what happens to it ---

    def guarded(self, act: Callable[[LiveTasks], Any]) -> Any:
        if self.tasks is None:
            return None
        try:
            return act(self.tasks)
        except GivenUpError as error:
            self.given_up.append(str(error))
            self.die()
        return None

    def send(self, written: Written) -> None:
        self.guarded(lambda tasks: tasks.take(written))

    def round(self) -> None:
        self.rounds += 1
        self.guarded(lambda tasks: self.told.hold(tasks.execute(self.spark.clock.now_ms())))
        for message in self.guarded(lambda _: self.told.ready()) or []:
            assert isinstance(message, (Settle, Executed, Acked))
            self.early += not isinstance(message, Executed)
            for host in self.spark.hosts:
                if message.task in host.loops:
                    host.loops[message.task].handle(message)

    def die(self) -> None:
        self.tasks = None
        self.close()
        for host in self.spark.hosts:
            host.line_changed(self, on=False)

    def wake_up(self) -> None:
        """Executes a round when another driver has taken over meanwhile: nobody is told of it."""
        if (tasks := self.tasks) is not None:
            log = self.told._log  # noqa: SLF001 # nothing but this test waits for it
            given = log.given
            with contextlib.suppress(GivenUpError):  # another process of it was killed
                self.told.hold(tasks.execute(self.spark.clock.now_ms()))
            if log.given > given:
                self.spark.fates["woke up"] += 1
                with pytest.raises(OSError, match="taken over"):
                    log.finish()
                with pytest.raises(GivenUpError, match="taken over"):
                    self.told.ready()
        self.close()

    def close(self) -> None:
        self.told.close()


class LiveHost(SimulatedHost):
    """A host that is on the line to the live process, if there is one."""

    spark: LiveSpark
    on_line = False

    def go_live(self, message: GoLive) -> None:
        if not self.on_line:
            self.on_line = True
            if self.spark.live.tasks is not None:
                self.line_changed(self.spark.live, on=True)

    def line_changed(self, line: Live, on: bool) -> None:
        for loop in self.loops.values() if self.on_line else ():
            loop.handle(LineChanged(line, on))  # type: ignore[arg-type]

    def die(self) -> None:
        self.on_line = False
        super().die()


class LiveSpark(SimulatedSpark):
    host_class = LiveHost
    live: Live
    deaths = 0.0
    attempted: Any = None
    begins_early = False
    """Whether the topology, when it is new, executes rounds before Spark's first micro-batch."""
    early_rounds = 0
    member_deaths = False
    moves = 0.0
    """How likely tasks move at a barrier."""
    until_death = 8
    """The first one comes early, so that each seed has one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        #: Live processes of drivers that have been replaced.
        self.frozen: list[Live] = []
        super().__init__(*args, **kwargs)
        #: What happened after moves, or within them, and to those that were frozen.
        self.fates: Counter[str] = Counter()

    def emit(self) -> None:
        """Spouts emit some tuples."""
        for host in self.hosts:
            for loop in list(host.loops.values()):
                host.work(loop, self.random.choice([0, 1, 3]))

    def make_coordinator(self, durable: Any = None) -> Any:
        stored, former = isinstance(self.folder, Storage), getattr(self, "live", None)
        if stored:
            token = f"{self.random.getrandbits(128):032x}"
            claim, _ = make_claim(as_storage(inside(self.folder, OWNERS)), token, {})
            self.spec = dataclasses.replace(self.spec, owner=claim.number)
            self.workers = [Worker(self.spec) for _ in self.workers]
        # With the driver goes the run, and its live process with that; but they may only have been frozen.
        if former is not None and stored:
            self.frozen.append(former)
            self.wake_up(self.random.choice([True, False]))
        elif former is not None:
            former.close()
        self.live = Live(self)
        return super().make_coordinator(durable)

    def wake_up(self, now: bool) -> None:
        for live in self.frozen if now else ():
            live.wake_up()
        if now:
            self.frozen.clear()

    def close(self) -> None:
        for live in (*self.frozen, self.live):
            live.close()
        super().close()

    def executed_ms(self) -> int | None:
        executed_ms = begin_rounds(self.spec.open_folder(), self.spec.owner, self.offsets[-1])
        self.wake_up(self.spec.owner > 0 and self.random.choice([True, False]))
        return executed_ms

    def step(self, killed_at: str | None = None) -> bool:
        self.wake_up(self.spec.owner > 0 and self.random.random() < 0.3)
        return super().step(killed_at)

    def start(self) -> None:
        super().start()
        if self.begins_early:
            self.begins_early = False  # from then on it waits for Spark
            self.live.adopt(Adopt("", b"", BEGINNING, Offset(), {}, ()))
            self.coordinator.look_at_live()
            for _ in range(self.random.randrange(8)):
                host = self.random.choice(self.hosts)
                for loop in list(host.loops.values()):
                    host.work(loop, self.random.choice([0, 1, 3]))
                self.clock.advance(self.random.choice([0, 0.1, 0.5]))
                self.live.round()
                if self.random.random() < 0.3:
                    self.live.barrier(Offset(), {})
            self.early_rounds = self.live.rounds

    def _make_host(self, *args: Any) -> Any:
        host = super()._make_host(*args)
        host.spark = self
        return host

    def executed(
        self,
        worker: Worker,
        operator: Operator,
        chunks: list[Chunk],
        info: BatchInfo,
        state_of: Callable[[int], MemoryStore],
    ) -> list[Row]:
        touched: dict[int, MemoryStore] = {}

        def noted(task: int) -> MemoryStore:
            if task not in touched:
                touched[task] = state_of(task)
            return touched[task]

        def values() -> dict[Key, bytes]:
            found = {**self.state, **{task: store.values for task, store in touched.items()}}
            return {(task, *name): value for task, values in found.items() for name, value in values.items()}

        # Between the barrier and the worker's question more rounds are executed, and the process may end.
        first, self.attempted = self.attempted != (self.live, info.batch), (self.live, info.batch)
        if first and self.random.random() < 0.5:
            self.emit()
            self.live.round()
            if self.random.random() < self.deaths:
                self.live.die()
        start, end = self.offsets[info.batch], self.offsets[info.batch + 1]
        before, cuts = values(), self.live.cuts
        folder, token = rounds_of(self.spec.open_folder(), self.spec.owner), before.get((NOBODY, "live", 0), BEGINNING)

        def rounds_behind(token: bytes) -> list[Round]:
            return [one for one in read_rounds(folder, token) if not is_before(one.end, end)]

        behind = rounds_behind(token)
        rows = list(
            micro_batch(
                self.live,
                worker,
                (self.spec.start_id, b""),
                noted,
                values,
                (start, end),
                lambda: super(LiveSpark, self).executed(worker, operator, chunks, info, noted),
            )
        )
        if self.live.cuts > cuts:
            self.check_rounds(before, start, end, rows)
        # Spouts have heard of them: whoever continues from the new state has to find them.
        assert rounds_behind(values()[NOBODY, "live", 0])[: len(behind)] == behind
        return rows

    def check_rounds(self, before: dict[Key, bytes], start: Offset, end: Offset, rows: list[Row]) -> None:
        """Checks that a worker which executes the rounds of a live cut again comes to the same outcomes."""
        token = before.get((NOBODY, "live", 0), BEGINNING)
        # A store gets rounds later, and spouts hear of them later.
        self.live.told._log.finish()  # noqa: SLF001 # nothing but this test waits for them
        with pytest.MonkeyPatch.context() as patch:
            # By the rules of micro-batches, whatever the live process executed a round by.
            patch.setattr(SmallRounds, "suits", lambda *_: False)
            again = caught_up(Worker(self.spec), token, lambda: before, start, end)
        assert again is not None, "the rounds of a cut are on the disk"
        found = outcomes(again.rows)
        # It may also end messages whose tuples waited for the next round.
        assert found == found | outcomes(body for _, body in rows)


def outcomes(bodies: Iterable[bytes]) -> dict[int, int]:
    """What became of each root."""
    found: dict[int, int] = {}
    for body in bodies:
        header = chunk.read_header(body)
        if header.kind == Kind.OUTCOME:
            roots, codes = chunk.read_outcome(header, body)
            found.update(zip(roots.tolist(), codes.tolist(), strict=True))
    return found


class LiveSimulation(Simulation):
    """Rounds, and the end of the live process, come at any time."""

    spark = LiveSpark
    partitions = (1,)
    cluster: LiveSpark
    deaths = 0.0

    def __init__(self, *args: Any, processes: int = 1, **kwargs: Any) -> None:
        self.conf = {
            "topology.profile": "realtime",
            "topology.workers": processes,
            "topology.state.checkpoint.interval.ms": 100,  # a step waits for it
        }
        super().__init__(*args, **kwargs)
        self.seen: list[Live] = []

    def specified(self, spec: RunSpec, folder: Path) -> RunSpec:
        return dataclasses.replace(spec, folder=str(folder))

    def kill_something(self) -> None:
        super().kill_something()
        self.cluster.deaths = self.deaths
        live = self.cluster.live
        if live not in self.seen:
            self.seen.append(live)
        for _ in range(self.random.randrange(6)):
            host = self.random.choice(self.cluster.hosts)
            for loop in list(host.loops.values()):
                host.work(loop, self.random.choice([0, 1, 3]))
            if self.random.random() < 0.7:
                self.cluster.clock.advance(self.random.choice([0, 0.1, 0.5]))
                live.round()
            if self.random.random() < self.deaths:
                live.die()

    def check_end(self) -> None:
        # Nobody calls rounds any more; time goes on in micro-batches.
        self.cluster.live.ended = True
        self.cluster.live.die()
        super().check_end()
