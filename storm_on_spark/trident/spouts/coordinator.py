"""The spout that begins batches and commits them: one task for all spouts whose tuples meet."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol

import cloudpickle

from storm_on_spark.api.component import BaseRichSpout, Waker
from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.trident.batches import TransactionAttempt
from storm_on_spark.trident.spouts.rich import RichSpoutCoordinator, RichSpoutInBatches
from storm_on_spark.trident.spouts.transactions import Transactions

if TYPE_CHECKING:
    from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
    from storm_on_spark.api.task.collector import SpoutOutputCollector
    from storm_on_spark.api.task.context import TopologyContext
    from storm_on_spark.trident.spouts.interfaces import BatchCoordinator

log = logging.getLogger(__name__)

_MOST_REQUESTS: Final = 64
"""How many single requests are under way at most, if `topology.max.spout.pending` is not set."""

BATCH: Final = "$batch"
"""The stream that begins batches."""
COMMIT: Final = "$commit"
"""The stream on which batches are committed, in order."""
SUCCESS: Final = "$success"
"""The stream that tells what is committed."""


class Coordinates(Protocol):
    """What the coordinator needs of a spout."""

    def get_coordinator(self, tx_state_id: str, conf: Mapping[str, Any], context: TopologyContext) -> BatchCoordinator:
        """Returns the part that decides what is in a batch."""


@dataclass(frozen=True)
class _BatchSettings(Settings):
    interval_ms: Annotated[int, Config.TOPOLOGY_TRIDENT_BATCH_EMIT_INTERVAL_MILLIS]
    most: Annotated[int | None, Config.TOPOLOGY_MAX_SPOUT_PENDING]


class _Kept:
    """What is restored after a crash: batches, and what can be pickled of the spouts' coordinators.

    A plain spout is saved attribute by attribute, like one without Trident.
    """

    def __init__(self, coordinators: Mapping[int, BatchCoordinator]) -> None:
        self.batches = Transactions()
        #: What the spouts' coordinators said of each batch that is not committed, and of the last one that is: spout ->
        #: metadata.
        self.metadata: dict[int, dict[int, Any]] = {}
        self.coordinators = dict(coordinators)
        self._left_out: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {"batches": self.batches, "metadata": self.metadata}
        for number, coordinator in self.coordinators.items():
            if isinstance(coordinator, RichSpoutCoordinator):
                state[f"drawn {number}"] = coordinator.drawn
                objects = {f"spout {number} {name}": value for name, value in coordinator.saved().items()}
            else:
                objects = {f"coordinator {number} {name}": value for name, value in vars(coordinator).items()}
            state.update({name: value for name, value in objects.items() if self._can_be_saved(name, value)})
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.batches, self.metadata = state["batches"], state["metadata"]
        for name, value in state.items():
            kind, _, rest = name.partition(" ")
            number, _, attribute = rest.partition(" ")
            if not number:
                continue
            coordinator = self.coordinators.get(int(number))
            if isinstance(coordinator, RichSpoutCoordinator):
                if kind == "drawn":
                    coordinator.drawn.restore(value)
                elif kind == "spout":
                    coordinator.saved()[attribute] = value
            elif coordinator is not None and kind == "coordinator":
                vars(coordinator)[attribute] = value

    def _can_be_saved(self, name: str, value: Any) -> bool:
        if name in self._left_out:
            return False
        try:
            cloudpickle.dumps(value)
        except Exception as error:  # whatever the attributes' own methods raise
            self._left_out.add(name)
            log.info("%s can't be pickled (%s): it will be what open makes of it after a restart", name, error)
            return False
        return True


class MasterBatchCoordinator(BaseRichSpout):
    """Begins batches, attempts those again that fail, and commits them in order; Storm's `MasterBatchCoordinator`.

    Args:
        spouts: what makes the coordinators of the spouts, by operation, with the id of their stream.
        commits: whether something takes part in the commit of a batch.
        at_once: whether a batch may begin without waiting for the time of the next.
    """

    def __init__(self, spouts: Mapping[int, tuple[str, Coordinates]], commits: bool, at_once: bool = False) -> None:
        self._spouts = dict(spouts)
        self._commits = commits
        self._at_once = at_once
        self.state_holder: Any = _Kept({})
        self.state_services: tuple[object, ...] = ()

    def get_component_configuration(self) -> Mapping[str, Any]:
        """Returns the configuration of plain spouts, which run here."""
        spouts = [spout for _, spout in self._spouts.values() if isinstance(spout, RichSpoutInBatches)]
        return {name: value for spout in spouts for name, value in (spout.get_component_configuration() or {}).items()}

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Makes the spouts' coordinators."""
        settings = _BatchSettings.of(conf)
        self._interval = 0.0 if self._at_once else settings.interval_ms / 1000
        self._most = settings.most or (_MOST_REQUESTS if self._at_once else 1)
        self._collector = collector
        self._next = 0.0
        made = {number: spout.get_coordinator(name, conf, context) for number, (name, spout) in self._spouts.items()}
        self.state_holder = _Kept(made)
        self._kept.batches.independent = self._at_once
        rich = (coordinator for coordinator in made.values() if isinstance(coordinator, RichSpoutCoordinator))
        self.state_services = tuple(service for coordinator in rich for service in coordinator.services)

    def woken_by(self, wake: Waker) -> None:
        """Tells plain spouts what makes the next tuple be asked for at once."""
        for coordinator in self._coordinators().values():
            if isinstance(coordinator, RichSpoutCoordinator):
                coordinator.spout.woken_by(wake)

    def activate(self) -> None:
        """Activates plain spouts."""
        for coordinator in self._coordinators().values():
            if isinstance(coordinator, RichSpoutCoordinator):
                coordinator.spout.activate()

    def deactivate(self) -> None:
        """Deactivates plain spouts."""
        for coordinator in self._coordinators().values():
            if isinstance(coordinator, RichSpoutCoordinator):
                coordinator.spout.deactivate()

    def close(self) -> None:
        """Closes the spouts' coordinators."""
        for coordinator in self._coordinators().values():
            coordinator.close()

    def next_tuple(self) -> None:
        """Begins a batch, if one is due."""
        self._commit()
        batches = self._kept.batches
        txid = batches.due(self._most)
        if txid is None:
            return
        fresh = txid not in batches.attempts
        coordinators = self._coordinators()
        if fresh:
            now = time.monotonic()
            if now < self._next or all(coordinator.exhausted(txid) for coordinator in coordinators.values()):
                return
            if not any(coordinator.is_ready(txid) for coordinator in coordinators.values()):
                return
            self._next = now + self._interval
        known = self._kept.metadata
        before, current = known.get(txid - 1, {}), known.get(txid, {})
        known[txid] = {
            number: coordinator.initialize_transaction(txid, before.get(number), current.get(number))
            for number, coordinator in coordinators.items()
        }
        attempt = batches.begin(txid)
        self._collector.emit([attempt, batches.current, known[txid]], message_id=attempt, stream=BATCH)

    def ack(self, message_id: TransactionAttempt) -> None:
        """Commits what is due."""
        self._settled(self._kept.batches.acked(message_id))
        self._commit()

    def fail(self, message_id: TransactionAttempt) -> None:
        """Attempts the batch and all later ones again; a single tuple that failed is not part of that."""
        if not self._kept.batches.failed(message_id):
            return
        for number, coordinator in self._coordinators().items():
            if isinstance(coordinator, RichSpoutCoordinator) and coordinator.single:
                coordinator.fail(message_id.txid)
                self._kept.metadata[message_id.txid][number] = []

    def exhausted(self) -> bool:
        """Returns whether no batch is under way, and none will be."""
        batches = self._kept.batches
        return (
            not batches.active
            and not batches.attempts
            and all(coordinator.exhausted(batches.current) for coordinator in self._coordinators().values())
        )

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declares the streams about batches."""
        declarer.declare_stream(BATCH, Fields("id", "oldest", "metadata"))
        declarer.declare_stream(COMMIT, Fields("id", "oldest"))
        declarer.declare_stream(SUCCESS, Fields("id", "oldest"))

    @property
    def _kept(self) -> _Kept:
        kept = self.state_holder
        assert isinstance(kept, _Kept)
        return kept

    def _coordinators(self) -> dict[int, BatchCoordinator]:
        return self._kept.coordinators

    def _commit(self) -> None:
        for attempt in list(self._kept.batches.commits()):
            if self._commits:
                self._collector.emit([attempt, self._kept.batches.current], message_id=attempt, stream=COMMIT)
            else:
                self._settled(self._kept.batches.acked(attempt))
                self._commit()

    def _settled(self, txid: int | None) -> None:
        """Tells everybody that a batch is committed."""
        if txid is None:
            return
        kept = self._kept
        kept.metadata.pop(txid - 1, None)
        for coordinator in self._coordinators().values():
            coordinator.success(txid)
        self._collector.emit([TransactionAttempt(txid, 0), kept.batches.current], stream=SUCCESS)
