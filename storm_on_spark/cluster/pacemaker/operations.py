"""What a server does with a request: a request and its sender go in, an answer comes out. No I/O, no clock."""

from __future__ import annotations

from typing import Final

from storm_on_spark.cluster.errors import LimitError, RecordError, WireError
from storm_on_spark.cluster.pacemaker.access import SUPERVISORS_ID, Identity, Rules
from storm_on_spark.cluster.pacemaker.heartbeats import Heartbeats, checked_path
from storm_on_spark.cluster.pacemaker.messages import REQUESTS, Message, MessageType, Nodes, Pulse, Records
from storm_on_spark.cluster.pacemaker.metrics import Metrics

_ROOT_TOO: Final = frozenset(
    {
        MessageType.EXISTS,
        MessageType.GET_ALL_NODES_FOR_PATH,
        MessageType.GET_ALL_PULSE_FOR_PATH,
        MessageType.DELETE_PATH,
    }
)
_PULSE_BYTES: Final = 32
"""Of a pulse in a message, beside its path and value."""


class Refused(Exception):  # noqa: N818
    """A request that is answered by NOT_AUTHORIZED; the message says why, for the log."""


class Operations:
    """The eight operations over one map of heartbeats.

    An operation that is repeated does what it did before, and is answered again: Storm's client sends a request up to
    eleven times, with one number.

    Args:
        beats: the map.
        rules: who may do what.
        metrics: what is counted.
        answer_bytes: of an answer at most; all clients have that limit, too.
    """

    def __init__(self, beats: Heartbeats, rules: Rules, metrics: Metrics, answer_bytes: int) -> None:
        self._beats = beats
        self.rules = rules
        self._metrics = metrics
        self._answer_bytes = answer_bytes

    def answer(self, request: Message, who: Identity, now: float) -> Message:
        """Returns the answer to a request.

        Args:
            request: with its number, which the answer has, too.
            who: the client.
            now: seconds that never go back.

        Raises:
            Refused: the client may not do this, or would keep too much.
            WireError: it is not a request, or its path or value is wrong.
        """
        type_ = request.type
        if type_ not in REQUESTS:
            raise WireError(f"{type_.name} is not a request")
        data = request.data
        value: bytes | None = None
        given: object = data
        if type_ is MessageType.SEND_PULSE:
            if not isinstance(data, Pulse) or data.details is None:
                raise WireError("SEND_PULSE needs a pulse with an id and details")
            given, value = data.id, data.details
        try:
            path = checked_path(given, root=type_ in _ROOT_TOO)
        except RecordError as error:
            raise WireError(f"{type_.name}: {error}") from None
        if not self.rules.allows(who, type_, path):
            raise Refused(f"{who} is not allowed to send {type_.name} for {path or '/'!r:.200}")
        try:
            return Message(type_.reply, self._do(type_, path, value, who, now), request.id)
        except LimitError as error:
            raise Refused(f"{who}, {type_.name}: {error}") from None

    def _do(
        self, type_: MessageType, path: str, value: bytes | None, who: Identity, now: float
    ) -> bool | Pulse | Nodes | Records | None:
        beats, metrics, owner = self._beats, self._metrics, str(who)
        # Supervisors log in as one topology.
        topology = who.role == "topology" and who.name != SUPERVISORS_ID
        if value is not None:
            beats.put(path, value, owner, now, topology=topology)
            metrics.received(len(value))
        elif type_ is MessageType.GET_PULSE:
            found = beats.get(path)
            metrics.sent(found)
            return Pulse(path, found)
        elif type_ is MessageType.GET_ALL_NODES_FOR_PATH:
            return Nodes(tuple(beats.children(path)))
        elif type_ is MessageType.GET_ALL_PULSE_FOR_PATH:
            return self._all(path)
        elif type_ is MessageType.EXISTS:
            return beats.exists(path)
        elif type_ is MessageType.CREATE_PATH:
            beats.create(path, owner, now, topology=topology)
        elif type_ is MessageType.DELETE_PATH:
            beats.delete_all(path)
        else:
            beats.delete(path)
        return None

    def _all(self, path: str) -> Records | None:
        """Returns all pulses; None, which is what Storm's server always says, if they don't fit into one message."""
        pulses: list[Pulse] = []
        remaining = self._answer_bytes - 64
        for pulse in self._beats.pulses(path):
            # A character of a path has at most four bytes.
            remaining -= _PULSE_BYTES + 4 * len(pulse.id) + len(pulse.details or b"")
            if remaining < 0:
                return None
            pulses.append(pulse)
        for pulse in pulses:
            self._metrics.sent(pulse.details)
        return Records(tuple(pulses))
