"""The coordinator's server for the streaming source: a Unix socket in a folder that only this user can enter."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
import traceback
from collections.abc import Callable

from storm_on_spark.runtime.batches.offsets import Offset
from storm_on_spark.runtime.reports.report import Failure
from storm_on_spark.spark.session.folders.dirs import socket_folder
from storm_on_spark.spark.session.folders.owned import remove_owned

log = logging.getLogger(__name__)

_MAX_LINE = 1 << 20


class OffsetServer:
    """Answers each line, an offset in JSON, with the offset at which the next micro-batch ends.

    Args:
        poll: the coordinator's `poll`.
        on_failure: called when that raises: Spark would only hear that there is nothing new.
    """

    def __init__(self, poll: Callable[[Offset], Offset], on_failure: Callable[[Failure], None]) -> None:
        self._poll = poll
        self._on_failure = on_failure
        self._folder = socket_folder()
        self.path = str(self._folder / "offsets")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, name="offset-server", daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), name="offset-poll", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rwb") as line:
                while request := line.readline(_MAX_LINE):
                    try:
                        answer = self._poll(Offset.from_json(json.loads(request)))
                    except OSError:
                        log.exception("the end of the next micro-batch is not known; the source asks again")
                        return
                    line.write(json.dumps(answer.to_json()).encode() + b"\n")
                    line.flush()
        except OSError:
            return  # the source's process is gone; so is its query
        except Exception as error:
            log.exception("the next micro-batch can't be planned")
            reason = f"the next micro-batch can't be planned: {type(error).__name__}: {error}"
            self._on_failure(Failure("", None, reason, traceback.format_exc()))

    def close(self) -> None:
        """Stops answering and removes the socket; returns when all threads have ended."""
        for end in (self._listener, *self._connections):
            with contextlib.suppress(OSError):  # not connected, or closed by the other side
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join()
        remove_owned(self._folder)
