"""The load of `make faults` as a topology that is submitted.

Its spout and its last bolt record in the checkpoint for which driver they work. It takes as long as the scenario needs:
at first it keeps a slow pace, and full speed once there is a file `hurry` in the ledger's folder.

Configuration: `failover.ledger`, the folder of its ledger; `failover.messages` and `failover.seconds` of its `Load`;
and where its checkpoint is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.failover.writes import Writer
from lab.load.topology import Load, Messages, Pacer, Sink
from lab.load.topology import build as build_load
from storm_on_spark import Config, Topology, Tuple

HURRY = "hurry"
_PAUSE_SECS = 0.05
"""Seconds between two records of the driver."""


class PacerUntil(Pacer):
    """Keeps the pace until a file exists.

    Args:
        rate: messages per second.
        file: the file.
    """

    def __init__(self, rate: float, file: Path) -> None:
        super().__init__(rate)
        self._file = file

    def due(self) -> bool:
        """Whether a message is due."""
        return super().due() or self._file.exists()

    def __reduce__(self) -> tuple[type[PacerUntil], tuple[float, Path]]:  # type: ignore[override]
        return PacerUntil, (self._rate, self._file)


class WitnessedMessages(Messages):
    """Emits the messages, and records for which driver.

    Args:
        load: what to emit.
        folder: the ledger.
        checkpoint: of the topology.
    """

    def __init__(self, load: Load, folder: str, checkpoint: str) -> None:
        super().__init__(load, folder)
        self._checkpoint = checkpoint

    def open(self, conf: Mapping[str, Any], context: Any, collector: Any) -> None:
        """Starts before the first message."""
        super().open(conf, context, collector)
        self._pacer = PacerUntil(self._load.rate / self._tasks, Path(self._folder, HURRY))
        self._writer = Writer(Path(self._checkpoint), _PAUSE_SECS)

    def next_tuple(self) -> None:
        """Emits one message if one is due."""
        self._writer.write()
        super().next_tuple()


class WitnessedSink(Sink):
    """Writes every tuple to the ledger, and records for which driver.

    Args:
        folder: the ledger.
        checkpoint: of the topology.
    """

    stateless = True

    def __init__(self, folder: str, checkpoint: str) -> None:
        super().__init__(folder)
        self._checkpoint = checkpoint

    def prepare(self, conf: Mapping[str, Any], context: Any) -> None:
        """Prepares the records."""
        self._writer = Writer(Path(self._checkpoint), _PAUSE_SECS)

    def execute(self, tup: Tuple, collector: Any) -> None:
        """Writes it."""
        self._writer.write()
        super().execute(tup, collector)


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    load = Load(int(conf["failover.messages"]), float(conf["failover.seconds"]))
    folder, checkpoint = str(conf["failover.ledger"]), str(conf[Config.TOPOLOGY_CHECKPOINT_DIR])
    return build_load(
        load, Path(folder), WitnessedMessages(load, folder, checkpoint), WitnessedSink(folder, checkpoint)
    )
