"""Messages as bytes: JSON followed by a line `end`, or MessagePack."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from typing import Any, Final

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.multilang.errors import ShellError

MAX_MESSAGE_BYTES: Final = 64 << 20
"""Largest message that a child may send."""
_END = re.compile(rb"\r?\nend\r?\n")
_EXCERPT = 200


class Framing(ABC):
    """Encodes messages for one child, and decodes what it sends."""

    @abstractmethod
    def encode(self, message: Any) -> bytes:
        """Returns the bytes of a message.

        Raises:
            ValueError: a value has no form in this serializer; the message names its type.
        """

    @abstractmethod
    def feed(self, data: bytes) -> list[Any]:
        """Returns the messages that `data` completes.

        Raises:
            ShellError: the bytes are not a message, or the message is too large.
        """

    @property
    @abstractmethod
    def rest(self) -> bytes:
        """The bytes of a message that is not complete."""


class JsonFraming(Framing):
    r"""Storm's own serializer.

    Example:
        >>> framing = JsonFraming()
        >>> framing.encode({"command": "next", "id": ""})
        b'{"command":"next","id":""}\nend\n'
        >>> framing.feed(b'{"command":"sync"}\nend\n{"com')
        [{'command': 'sync'}]
        >>> framing.rest
        b'{"com'
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0
        self._encode = json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
        ).encode

    def encode(self, message: Any) -> bytes:
        try:
            return self._encode(message).encode() + b"\nend\n"
        except TypeError as error:
            raise ValueError(str(error)) from None

    def feed(self, data: bytes) -> list[Any]:
        self._rest += data
        found: list[Any] = []
        start, search = 0, self._searched
        while (end := _END.search(self._rest, search)) is not None:
            text = bytes(self._rest[start : end.start()])
            start = search = end.end()
            try:
                found.append(json.loads(text))
            except (ValueError, RecursionError):
                raise ShellError(f"it sent what is not JSON: {text[:_EXCERPT]!r}") from None
        del self._rest[:start]
        # The end mark may have been cut in two.
        self._searched = max(0, len(self._rest) - 6)
        _check_size(self._rest)
        return found

    @property
    def rest(self) -> bytes:
        return bytes(self._rest)


class MsgpackFraming(Framing):
    """The MessagePack serializer of pystorm; needs the package `msgpack`."""

    def __init__(self) -> None:
        try:
            import msgpack
        except ImportError:
            raise ConfigError(needs_extra('topology.multilang.serializer: "msgpack"', "multilang", "msgpack")) from None
        self._pack = msgpack.Packer(use_bin_type=True, default=_plain).pack
        self._unpacker = msgpack.Unpacker(raw=False, max_buffer_size=MAX_MESSAGE_BYTES + (1 << 20))
        self._errors = (ValueError, msgpack.UnpackException)
        self._rest = bytearray()
        #: Position in the stream at which `_rest` begins.
        self._start = 0

    def encode(self, message: Any) -> bytes:
        try:
            packed: bytes = self._pack(message)
        except (TypeError, OverflowError) as error:
            raise ValueError(str(error)) from None
        return packed

    def feed(self, data: bytes) -> list[Any]:
        self._rest += data
        found = []
        done = self._start
        try:
            self._unpacker.feed(data)
            for message in self._unpacker:
                found.append(message)
                done = self._unpacker.tell()
        except self._errors:
            begin = done - self._start
            excerpt = bytes(self._rest[begin : begin + _EXCERPT])
            raise ShellError(f"it sent what is not MessagePack: {excerpt!r}") from None
        del self._rest[: done - self._start]
        self._start = done
        _check_size(self._rest)
        return found

    @property
    def rest(self) -> bytes:
        return bytes(self._rest)


def framing_of(serializer: str) -> Framing:
    """Returns the framing that `topology.multilang.serializer` names: "json", "msgpack" or a class of Storm's.

    Raises:
        ConfigError: there is no such serializer.

    Example:
        >>> type(framing_of("org.apache.storm.multilang.JsonSerializer")).__name__
        'JsonFraming'
    """
    name = serializer.rpartition(".")[2].lower().removesuffix("serializer")
    if name == "json":
        return JsonFraming()
    if name in ("msgpack", "messagepack"):
        return MsgpackFraming()
    raise ConfigError(
        f'topology.multilang.serializer must be "json", "msgpack" or the name of such a class of Storm\'s '
        f"(org.apache.storm.multilang.JsonSerializer), not {serializer!r:.100}"
    )


def _check_size(rest: bytearray) -> None:
    if len(rest) > MAX_MESSAGE_BYTES:
        raise ShellError(
            f"it sent a message of more than {MAX_MESSAGE_BYTES >> 20} MB, or does not end its messages: "
            f"{bytes(rest[:_EXCERPT])!r}"
        )


def _plain(value: Any) -> Any:
    """Returns a number of NumPy, or values in a set or tuple of another type, as what serializers know."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__} can't be sent to another process")
