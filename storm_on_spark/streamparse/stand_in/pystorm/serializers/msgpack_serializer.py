"""Messages as msgpack, where that is installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from storm_on_spark.streamparse.stand_in.pystorm.exceptions import StormWentAwayError
from storm_on_spark.streamparse.stand_in.pystorm.serializers.serializer import Serializer

_CHUNK_BYTES = 1 << 20


class MsgpackSerializer(Serializer):
    """Msgpack knows where a message ends, so nothing stands between two."""

    def __init__(
        self,
        input_stream: Any,
        output_stream: Any,
        reader_lock: AbstractContextManager[Any],
        writer_lock: AbstractContextManager[Any],
    ) -> None:
        super().__init__(input_stream, getattr(output_stream, "buffer", output_stream), reader_lock, writer_lock)
        self._messages = self._read()

    def _read(self) -> Iterator[Any]:
        unpacker = _msgpack().Unpacker()
        while True:
            with self._reader_lock:
                # What is there, at most so much: `read` of a pipe waits until it is full.
                take = getattr(self.input_stream, "read1", self.input_stream.read)
                some = take(_CHUNK_BYTES)
            if not some:
                raise StormWentAwayError
            unpacker.feed(some)
            yield from unpacker

    def read_message(self) -> Any:
        """Returns the next message."""
        return next(self._messages)

    def serialize_dict(self, msg_dict: Any) -> bytes:
        """Returns a message as bytes."""
        packed: bytes = _msgpack().packb(msg_dict)
        return packed


def _msgpack() -> Any:
    return importlib.import_module("msgpack")
