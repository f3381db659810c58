"""What serializers have in common."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from typing import Any

from storm_on_spark.streamparse.stand_in.pystorm.exceptions import StormWentAwayError

log = logging.getLogger(__name__)


class Serializer:
    """Reads messages from one stream and writes them to another."""

    def __init__(
        self,
        input_stream: Any,
        output_stream: Any,
        reader_lock: AbstractContextManager[Any],
        writer_lock: AbstractContextManager[Any],
    ) -> None:
        self.input_stream = input_stream
        self.output_stream = output_stream
        self._reader_lock = reader_lock
        self._writer_lock = writer_lock

    def read_message(self) -> Any:
        """Returns the next message.

        Raises:
            StormWentAwayError: the stream is at its end.
        """
        raise NotImplementedError

    def serialize_dict(self, msg_dict: Any) -> Any:
        """Returns a message as it is written."""
        raise NotImplementedError

    def send_message(self, msg_dict: Any) -> None:
        """Writes a message; one that can't be written is logged and left out, as pystorm does."""
        with self._writer_lock:
            try:
                self.output_stream.flush()
                self.output_stream.write(self.serialize_dict(msg_dict))
                self.output_stream.flush()
            except OSError as error:
                raise StormWentAwayError from error
            except Exception:
                log.exception("Failed to send message: %r", msg_dict)
