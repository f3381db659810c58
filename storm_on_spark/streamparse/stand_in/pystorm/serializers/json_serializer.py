"""Storm's own form of messages: JSON, and a line `end` after each."""

from __future__ import annotations

import io
import json
import logging
from contextlib import AbstractContextManager
from typing import Any

from storm_on_spark.streamparse.stand_in.pystorm.exceptions import StormWentAwayError
from storm_on_spark.streamparse.stand_in.pystorm.serializers.serializer import Serializer

log = logging.getLogger(__name__)


class JSONSerializer(Serializer):
    """JSON in UTF-8."""

    def __init__(
        self,
        input_stream: Any,
        output_stream: Any,
        reader_lock: AbstractContextManager[Any],
        writer_lock: AbstractContextManager[Any],
    ) -> None:
        streams = (self._wrap_stream(input_stream), self._wrap_stream(output_stream))
        super().__init__(*streams, reader_lock, writer_lock)

    @staticmethod
    def _wrap_stream(stream: Any) -> Any:
        # A second wrapper would close the stream when it is collected.
        return stream if hasattr(stream, "buffer") else io.TextIOWrapper(stream, encoding="utf-8")

    def read_message(self) -> Any:
        """Returns the next message: the lines up to `end`, without blank ones.

        Raises:
            StormWentAwayError: the stream is at its end.
            ValueError: the lines are not JSON.
        """
        lines = []
        with self._reader_lock:
            while (line := self.input_stream.readline()) != "end\n":
                if not line:
                    raise StormWentAwayError
                if line.strip():
                    lines.append(line)
        try:
            return json.loads("".join(lines))
        except ValueError:
            log.error("JSON decode error for message: %r", "".join(lines), exc_info=True)
            raise

    def serialize_dict(self, msg_dict: Any) -> str:
        """Returns a message as text."""
        return f"{json.dumps(msg_dict)}\nend\n"
