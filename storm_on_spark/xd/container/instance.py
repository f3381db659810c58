"""One instance of a module, on its own thread: reads from the bus, executes, writes to the bus."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.xd.bus.journal import Message, Positions, Record, TakenError
from storm_on_spark.xd.bus.port import Bus, BusError, Input, Letter, Place
from storm_on_spark.xd.container.chain import Chain, Holds
from storm_on_spark.xd.container.errors import Errors, ExecuteError, failure_of, message_text

logger = logging.getLogger(__name__)

ATTEMPTS: Final = 3
"""How often a message is tried before it becomes a dead letter."""
_MOST_MESSAGES: Final = 1000
_STEP_SECS: Final = 0.05
_LEAST_PAUSE_SECS: Final = 0.005
_MOST_PAUSE_SECS: Final = 0.1
_FIRST_RETRY_SECS: Final = 1.0
_MOST_RETRY_SECS: Final = 10.0


class Instance:
    """Runs an instance until it is stopped.

    A step that fails for another reason than a message restarts from the last record, after a longer pause each time.

    Args:
        name: for messages.
        make: returns its components.
        bus: the message bus.
        place: on the bus.
        on_open: called once, when the instance runs for the first time.
        clock: seconds.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Chain],
        bus: Bus,
        place: Place,
        on_open: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._make = make
        self._place = place
        self._on_open = on_open
        self._clock = clock
        self._errors = Errors(name, clock)
        self._bus = bus
        self._port = bus.port(place)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        #: Of the last record: the state, what bolts held, and the inputs of that.
        self._state: tuple[bytes | None, ...] = ()
        self._holds: Holds = ()
        self._held_then: dict[int, Input] = {}
        #: Position, attempts and next due time of the message that can't be processed.
        self._stuck: tuple[tuple[str, int, int], int, float] | None = None
        self._most = _MOST_MESSAGES
        #: Dead letters of the present step.
        self._letters: list[Letter] = []
        #: Number -> input, of the present step and of those that a bolt holds.
        self._held: dict[int, Input] = {}
        self._count = 0
        #: Messages of the committed steps since the start; read by another thread.
        self.taken = self.emitted = 0

    def start(self) -> None:
        """Starts it."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it and waits until it has ended."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def signal(self) -> None:
        """Requests its end without waiting."""
        self._stopped.set()

    def _run(self) -> None:
        pause = _FIRST_RETRY_SECS
        while not self._stopped.is_set():
            began = self._clock()
            try:
                self._live()
                break
            except TakenError as error:
                logger.warning("%s: %s; continuing from there", self.name, error)
            except (BusError, SetupError) as error:
                logger.warning("%s: %s; trying again in %.0f s", self.name, error, pause)
            except ExecuteError as error:
                # An error of the source, or of a tick.
                self._errors.add(error.failure)
            except Exception:
                logger.exception("%s failed; trying again in %.0f s", self.name, pause)
            if self._clock() - began > _MOST_RETRY_SECS:
                pause = _FIRST_RETRY_SECS
            self._stopped.wait(pause)
            pause = min(_MOST_RETRY_SECS, 2 * pause)
        self._errors.tell(everything=True)

    def _live(self) -> None:
        chain, port = self._make(), self._bus.port(self._place)
        chain.report_to(self._errors.add)
        self._port = port
        try:
            self._open(chain)
            self._on_open()
            idle = _LEAST_PAUSE_SECS
            while not self._stopped.is_set():
                worked = not port.full() and (
                    self._from_source(chain) if chain.source is not None else self._from_bus(chain)
                )
                port.upkeep()
                self._errors.tell()
                idle = _LEAST_PAUSE_SECS if worked else min(_MOST_PAUSE_SECS, 2 * idle)
                if not worked:
                    self._stopped.wait(idle)
        finally:
            try:
                chain.close()
            finally:
                port.close()

    def _open(self, chain: Chain) -> None:
        record = self._port.open()
        self._state = () if record is None else record.state
        self._held, self._stuck, self._most, self._letters = {}, None, _MOST_MESSAGES, []
        self._holds, self._held_then = (), {}
        chain.open(self._state)
        if chain.source is not None and record is not None:
            for message_id in record.emitted:
                chain.ack(message_id)
        positions = {} if chain.source is not None else dict(self._port.positions)
        self._deliver(chain, positions, () if record is None else record.emitted)

    def _from_source(self, chain: Chain) -> bool:
        sent = chain.sent
        until = self._clock() + _STEP_SECS
        while len(sent.sent) < _MOST_MESSAGES and self._clock() < until:
            before = len(sent.sent)
            chain.next_tuple()
            if len(sent.sent) == before:
                break
        found, sent.sent = sent.sent, []
        if not found:
            return False
        out: list[Message] = []
        done: list[Any] = []
        for message_id, message, dead in found:
            if dead:
                self._bury(message, "it failed too often")
                done.append(message_id)
                continue
            before_it = () if chain.stateless else chain.state()
            try:
                out += chain.execute(message, -1)
            except ExecuteError as error:
                if not chain.stateless:
                    chain.restore(before_it)
                self._errors.add(error.failure)
                if message_id is not None:
                    chain.fail(message_id)
                    continue
                self._bury(message, str(error))
            done.append(message_id)
        out += chain.finish()
        acked = tuple(message_id for message_id in done if message_id is not None)
        self._commit(chain, out, {}, acked)
        for message_id in acked:
            chain.ack(message_id)
        return True

    def _from_bus(self, chain: Chain) -> bool:
        if self._stuck is not None and self._clock() < self._stuck[2]:
            return False
        out: list[Message] = chain.tick() or []
        taken, mine, until = 0, 0, self._clock() + _STEP_SECS
        inputs = self._port.next(self._most)
        # After `next`, which goes back if a log was truncated.
        positions = dict(self._port.positions)
        for each in inputs:
            if each.mine:
                self._count += 1
                mine += 1
                try:
                    out += chain.execute(each.message, self._count)
                except ExecuteError as error:
                    if mine > 1 or out:
                        return self._step_back(chain, mine - 1, taken, out, positions)
                    if not self._give_up(chain, each, error):
                        return False
                self._held[self._count] = each
            positions[each.journal] = each.following
            taken += 1
            if self._clock() >= until or chain.full():
                break
        self._most = _MOST_MESSAGES
        if not taken and not out:
            return False
        if not mine and not out:
            self._port.pass_by(positions)
            return True
        out += chain.finish()
        self._commit(chain, out, positions)
        self.taken += mine
        return True

    def _step_back(self, chain: Chain, mine: int, taken: int, out: list[Message], positions: Positions) -> bool:
        """Ends a step before a failed message, so that the next step begins with that message."""
        if chain.stateless:
            self._commit(chain, [*out, *chain.finish()], positions)
            self.taken += mine
        else:
            # The failed message may have changed the state.
            self._restore(chain)
            self._most = taken
        return True

    def _give_up(self, chain: Chain, each: Input, error: ExecuteError) -> bool:
        """Restores the chain. Returns whether the message has used up its attempts and becomes a dead letter."""
        where = each.journal, each.record, each.place
        tried = 1 if self._stuck is None or self._stuck[0] != where else self._stuck[1] + 1
        self._errors.add(error.failure)
        self._restore(chain)
        if tried < ATTEMPTS:
            delay = min(_MOST_RETRY_SECS, _FIRST_RETRY_SECS * 2 ** (tried - 1))
            self._stuck = where, tried, self._clock() + delay
            return False
        self._stuck = None
        self._bury(each.message, str(error))
        return True

    def _restore(self, chain: Chain) -> None:
        """Restores everything to the last record, including the inputs that bolts hold."""
        chain.restore(self._state, self._holds)
        chain.forget()
        self._held = dict(self._held_then)
        # The messages are read again, and become dead letters again.
        self._letters = []

    def _bury(self, message: Message, reason: str) -> None:
        """Turns a message into a dead letter, which is written with the step."""
        self._letters.append(Letter(message, reason))
        self._errors.add(failure_of("", f"a message is a dead letter now: {reason}", given=message_text(message)))

    def _commit(self, chain: Chain, out: list[Message], positions: Positions, emitted: tuple[Any, ...] = ()) -> None:
        self._write(chain, out, positions, emitted)
        self._deliver(chain, positions, emitted)

    def _deliver(self, chain: Chain, positions: Positions, emitted: tuple[Any, ...]) -> None:
        """Makes the sinks write the committed messages."""
        while refused := chain.deliver(durable=self._bus.sync):
            for message, reason in refused:
                self._bury(message, reason)
            # Before the others are written, because that makes the sinks forget the refused messages.
            self._write(chain, [], positions, emitted)

    def _write(self, chain: Chain, out: list[Message], positions: Positions, emitted: tuple[Any, ...]) -> None:
        track = self._place.track
        if track is not None:
            out = [message._replace(headers=track(message.headers)) for message in out]
        key = self._place.key
        if key is not None:
            out = [message._replace(key=key(message)) for message in out]
        else:
            out = [message._replace(key=None) for message in out]
        kept = dict(positions)
        held = chain.held()
        for number in sorted(chain.failed() & self._held.keys()):
            self._bury(self._held[number].message, "a module held it, and failed it then")
        self._held = {number: each for number, each in self._held.items() if number in held}
        for each in self._held.values():
            kept[each.journal] = min(kept[each.journal], (each.record, each.place))
        state = chain.state()
        record = Record(tuple(out), kept, state, emitted, self._place.era)
        letters, self._letters = self._letters, []
        self._port.commit(record, positions, letters)
        self.emitted += len(out)
        self._state, self._holds, self._held_then = state, chain.holds(), dict(self._held)
