"""Pacemaker's messages: Storm's `HBMessage`, in Thrift's binary protocol, to and from bytes.

On a connection each message is a frame: four bytes of length, big-endian, then one struct without an RPC envelope.

    frame(message) -> bytes                 a whole frame, to write to a socket
    decode(payload) -> Message              one frame's content, as `frames.Frames` cuts it out
    control(code), sasl_token(token)        -> Message, the two kinds that carry a login
    control_of(message), token_of(message)  the way back

A `Message` has a type, data (a path, a `Pulse`, a bool, `Records`, `Nodes`, bytes, or None) and a number. The data's
Python type says which field of Storm's union it is. A reply has the number of its request; the types of requests and
of their replies are paired by `MessageType.reply`.

Source: `storm.thrift`, `ThriftEncoder`, `ControlMessage` and `SaslMessageToken` of Apache Storm 2.8.
"""

from __future__ import annotations

import enum
import struct
from typing import Final

import msgspec

from storm_on_spark.cluster.errors import WireError


class MessageType(enum.IntEnum):
    """Storm's `HBServerMessageType`."""

    CREATE_PATH = 0
    CREATE_PATH_RESPONSE = 1
    EXISTS = 2
    EXISTS_RESPONSE = 3
    SEND_PULSE = 4
    SEND_PULSE_RESPONSE = 5
    GET_ALL_PULSE_FOR_PATH = 6
    GET_ALL_PULSE_FOR_PATH_RESPONSE = 7
    GET_ALL_NODES_FOR_PATH = 8
    GET_ALL_NODES_FOR_PATH_RESPONSE = 9
    GET_PULSE = 10
    GET_PULSE_RESPONSE = 11
    DELETE_PATH = 12
    DELETE_PATH_RESPONSE = 13
    DELETE_PULSE_ID = 14
    DELETE_PULSE_ID_RESPONSE = 15
    CONTROL_MESSAGE = 16
    SASL_MESSAGE_TOKEN = 17
    NOT_AUTHORIZED = 18

    @property
    def reply(self) -> MessageType:
        """The type of the reply to a request of this type.

        Raises:
            WireError: this is not a request.
        """
        if self not in REQUESTS:
            raise WireError(f"{self.name} is not a request; requests are {', '.join(each.name for each in REQUESTS)}")
        return MessageType(self + 1)


REQUESTS: Final = tuple(MessageType(number) for number in range(0, MessageType.CONTROL_MESSAGE, 2))
"""What a client may ask of a server, login apart."""


class Control(enum.IntEnum):
    """Storm's `ControlMessage`."""

    CLOSE = -100
    OK = -200
    END_OF_BATCH = -201
    SASL_TOKEN_MESSAGE_REQUEST = -202
    SASL_COMPLETE_REQUEST = -203
    FAILURE = -400


class Pulse(msgspec.Struct, frozen=True):
    """A heartbeat: its path, and its value. None stands for no value, which is how a server says "not here"."""

    id: str
    details: bytes | None = None


class Records(msgspec.Struct, frozen=True):
    """Heartbeats."""

    pulses: tuple[Pulse, ...] = ()


class Nodes(msgspec.Struct, frozen=True):
    """Names of what is below a path."""

    ids: tuple[str, ...] = ()


Data = str | Pulse | bool | Records | Nodes | bytes | None


class Message(msgspec.Struct, frozen=True):
    """One message.

    Example:
        >>> beat = Message(MessageType.SEND_PULSE, Pulse("/workerbeats/t-1/a-6700", b"42"), 7)
        >>> decode(frame(beat)[4:]) == beat
        True
    """

    type: MessageType
    data: Data = None
    id: int = -1
    """The number of a request, chosen by the client; -1 for messages of a login."""


# Thrift's numbers of types.
_STOP, _BOOL, _BYTE, _DOUBLE, _I16, _I32, _I64 = 0, 2, 3, 4, 6, 8, 10
_STRING, _STRUCT, _MAP, _SET, _LIST = 11, 12, 13, 14, 15
_SIZES: Final = {_BOOL: 1, _BYTE: 1, _DOUBLE: 8, _I16: 2, _I32: 4, _I64: 8}
_PATH, _PULSE, _BOOLVAL, _RECORDS, _NODES, _BLOB = 1, 2, 3, 4, 5, 7
_KINDS: Final = {_PATH: _STRING, _PULSE: _STRUCT, _BOOLVAL: _BOOL, _RECORDS: _STRUCT, _NODES: _STRUCT, _BLOB: _STRING}
_DEPTH: Final = 16
"""Of structs and lists within each other, in fields of another release."""
_TOKEN: Final = -500
_MOST_TEXT: Final = 64
MOST_VALUES: Final = 1_000_000
"""Fields and values of lists in a message by default. Some million tiny ones would fit into it, and take seconds."""

_HEAD: Final = struct.Struct(">iBHiBH")  # length, then the field `type` and the header of the field `data`
_TAIL: Final = struct.Struct(">BHiB")  # the field `message_id`, end of the message
_BARE: Final = struct.Struct(">iBHi")  # length, then the field `type`
_FIELD: Final = struct.Struct(">BH")
_TEXT_FIELD: Final = struct.Struct(">BHi")
_LIST_FIELD: Final = struct.Struct(">BHBi")
_INT: Final = struct.Struct(">i")
_CODE: Final = struct.Struct(">h")
_TOKEN_HEAD: Final = struct.Struct(">hi")


def frame(message: Message) -> bytes:
    """Returns a message's frame.

    Args:
        message: the message. Its size is not limited here: the other side has a limit.
    """
    data = message.data
    # As Storm's writer has it: the number -1 is not written.
    tail = b"\0" if message.id == -1 else _TAIL.pack(_I32, 3, message.id, _STOP)
    if data is None:
        return _BARE.pack(_BARE.size - 4 + len(tail), _I32, 1, message.type) + tail
    parts = _union(data)
    size = _HEAD.size - 4 + sum(map(len, parts)) + 1 + len(tail)
    head = _HEAD.pack(size, _I32, 1, message.type, _STRUCT, 2)
    return b"".join((head, *parts, b"\0", tail))


def decode(payload: bytes, most_values: int = MOST_VALUES) -> Message:
    """Returns the message in a frame.

    Fields that Storm's struct doesn't have are passed over, as every Thrift reader does.

    Args:
        payload: a frame's content, without its length.
        most_values: fields and values of lists that it may have; a server gets no lists, so it needs few.

    Raises:
        WireError: it is not a message.
    """
    try:
        return _Reader(payload, most_values).message()
    except (struct.error, IndexError):
        raise WireError(f"a message of {len(payload):,} bytes ends in the middle of a field") from None
    except UnicodeDecodeError as error:
        raise WireError(f"a text of a message is not UTF-8: {error.reason} at byte {error.start}") from None


def control(code: Control) -> Message:
    """Returns the message that carries a control code."""
    return Message(MessageType.CONTROL_MESSAGE, _CODE.pack(code))


def control_of(message: Message) -> Control:
    """Returns the control code of a message.

    Raises:
        WireError: it has none.
    """
    blob = _blob(message, MessageType.CONTROL_MESSAGE)
    try:
        (code,) = _CODE.unpack(blob)
        return Control(code)
    except (struct.error, ValueError):
        raise WireError(
            f"{_shown(blob)} is not a control code; expected 2 bytes, one of {sorted(map(int, Control))}"
        ) from None


def sasl_token(token: bytes) -> Message:
    """Returns the message that carries a step of a login."""
    return Message(MessageType.SASL_MESSAGE_TOKEN, _TOKEN_HEAD.pack(_TOKEN, len(token)) + token)


def token_of(message: Message) -> bytes:
    """Returns the step of a login that a message carries.

    Raises:
        WireError: it has none. The token itself is never in an error.
    """
    blob = _blob(message, MessageType.SASL_MESSAGE_TOKEN)
    if len(blob) >= _TOKEN_HEAD.size:
        code, size = _TOKEN_HEAD.unpack_from(blob)
        if code == _TOKEN and size == len(blob) - _TOKEN_HEAD.size:
            return blob[_TOKEN_HEAD.size :]
    raise WireError(f"a SASL token must be the code {_TOKEN}, a length and that many bytes; {len(blob):,} bytes came")


def _blob(message: Message, kind: MessageType) -> bytes:
    if message.type is not kind or not isinstance(message.data, bytes):
        raise WireError(f"expected a {kind.name} with bytes, not a {message.type.name} with {_kind(message.data)}")
    return message.data


def _union(data: Data) -> list[bytes]:
    if isinstance(data, str):
        return _text(_PATH, data.encode())
    if isinstance(data, Pulse):
        return [_FIELD.pack(_STRUCT, _PULSE), *_pulse(data)]
    if isinstance(data, bool):
        return [_FIELD.pack(_BOOL, _BOOLVAL), b"\1" if data else b"\0"]
    if isinstance(data, Records):
        parts = [_FIELD.pack(_STRUCT, _RECORDS), _LIST_FIELD.pack(_LIST, 1, _STRUCT, len(data.pulses))]
        for pulse in data.pulses:
            parts += _pulse(pulse)
        return [*parts, b"\0"]
    if isinstance(data, Nodes):
        parts = [_FIELD.pack(_STRUCT, _NODES), _LIST_FIELD.pack(_LIST, 1, _STRING, len(data.ids))]
        for name in data.ids:
            encoded = name.encode()
            parts += (_INT.pack(len(encoded)), encoded)
        return [*parts, b"\0"]
    assert data is not None
    return _text(_BLOB, data)


def _pulse(pulse: Pulse) -> list[bytes]:
    parts = _text(1, pulse.id.encode())
    if pulse.details is not None:
        parts += _text(2, pulse.details)
    parts.append(b"\0")
    return parts


def _text(number: int, value: bytes) -> list[bytes]:
    return [_TEXT_FIELD.pack(_STRING, number, len(value)), value]


class _Reader:
    """Reads one message from front to end; what is beyond its end raises `IndexError` or `struct.error`."""

    def __init__(self, payload: bytes, most_values: int) -> None:
        self._bytes = payload
        self._at = 0
        self._most = most_values
        self._remaining = most_values

    def message(self) -> Message:
        type_: MessageType | None = None
        data: Data = None
        number = -1
        while (field := self._field()) is not None:
            if field == (_I32, 1):
                code = self._int()
                try:
                    type_ = MessageType(code)
                except ValueError:
                    raise WireError(f"a message has type {code}; types are 0 to {max(MessageType)}") from None
            elif field == (_STRUCT, 2):
                data = self._union()
            elif field == (_I32, 3):
                number = self._int()
            else:
                self._skip(field[0])
        if type_ is None:
            raise WireError("a message has no type")
        if self._at != len(self._bytes):
            raise WireError(f"{len(self._bytes) - self._at:,} bytes follow the end of a message")
        return Message(type_, data, number)

    def _union(self) -> Data:
        data: Data = None
        fields = 0
        while (field := self._field()) is not None:
            kind, number = field
            fields += 1
            if fields > 1:
                raise WireError("the data of a message have two values, but a union must have one")
            if _KINDS.get(number) != kind:
                self._skip(kind)
            elif number == _PATH:
                data = self._text()
            elif number == _PULSE:
                data = self._pulse()
            elif number == _BOOLVAL:
                data = self._take(1) != b"\0"
            elif number == _RECORDS:
                data = self._records()
            elif number == _NODES:
                data = self._nodes()
            else:
                data = self._binary()
        return data

    def _pulse(self) -> Pulse:
        name: str | None = None
        details: bytes | None = None
        while (field := self._field()) is not None:
            if field == (_STRING, 1):
                name = self._text()
            elif field == (_STRING, 2):
                details = self._binary()
            else:
                self._skip(field[0])
        if name is None:
            raise WireError("a pulse has no id")
        return Pulse(name, details)

    def _records(self) -> Records:
        pulses: tuple[Pulse, ...] = ()
        while (field := self._field()) is not None:
            if field == (_LIST, 1):
                pulses = tuple(self._pulse() for _ in range(self._list(_STRUCT)))
            else:
                self._skip(field[0])
        return Records(pulses)

    def _nodes(self) -> Nodes:
        ids: tuple[str, ...] = ()
        while (field := self._field()) is not None:
            if field == (_LIST, 1):
                ids = tuple(self._text() for _ in range(self._list(_STRING)))
            else:
                self._skip(field[0])
        return Nodes(ids)

    def _field(self) -> tuple[int, int] | None:
        if self._bytes[self._at] == _STOP:
            self._at += 1
            return None
        self._spend(1)
        kind, number = _FIELD.unpack_from(self._bytes, self._at)
        self._at += _FIELD.size
        return kind, number

    def _list(self, kind: int) -> int:
        (given,) = self._take(1)
        size = self._size("list")
        if given != kind and size:
            raise WireError(f"a list holds values of Thrift's type {given}, but must hold type {kind}")
        return size

    def _size(self, what: str) -> int:
        size = self._int()
        # Every value has one byte at least, so no short message claims a long list.
        if not 0 <= size <= len(self._bytes) - self._at:
            raise WireError(f"a {what} claims {size:,} values; {len(self._bytes) - self._at:,} bytes are left")
        self._spend(size)
        return size

    def _spend(self, values: int) -> None:
        self._remaining -= values
        if self._remaining < 0:
            raise WireError(f"a message has more than {self._most:,} fields and values")

    def _int(self) -> int:
        (value,) = _INT.unpack_from(self._bytes, self._at)
        self._at += 4
        return int(value)

    def _text(self) -> str:
        return self._binary().decode()

    def _binary(self) -> bytes:
        return self._take(self._int())

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._bytes):
            raise WireError(f"a field claims {size:,} bytes; {len(self._bytes) - self._at:,} are left")
        found = self._bytes[self._at : end]
        self._at = end
        return found

    def _skip(self, kind: int, depth: int = 0) -> None:
        if depth > _DEPTH:
            raise WireError(f"values are nested more than {_DEPTH} deep")
        if kind in _SIZES:
            self._take(_SIZES[kind])
        elif kind == _STRING:
            self._binary()
        elif kind == _STRUCT:
            while (field := self._field()) is not None:
                self._skip(field[0], depth + 1)
        elif kind in (_LIST, _SET):
            (inner,) = self._take(1)
            for _ in range(self._size("list")):
                self._skip(inner, depth + 1)
        elif kind == _MAP:
            key, value = self._take(2)
            for _ in range(self._size("map")):
                self._skip(key, depth + 1)
                self._skip(value, depth + 1)
        else:
            raise WireError(f"a field has Thrift's type {kind}, which doesn't exist")


def _kind(data: Data) -> str:
    return "no data" if data is None else f"a value of type {type(data).__name__}"


def _shown(blob: bytes) -> str:
    return f"{len(blob):,} bytes" if len(blob) > _MOST_TEXT else blob.hex(" ")
