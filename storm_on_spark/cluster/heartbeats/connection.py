"""A connection to one Pacemaker: requests out, replies in, never without a limit of time."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.errors import AuthenticationError, PacemakerError, WireError
from storm_on_spark.cluster.heartbeats.settings import PacemakerSettings
from storm_on_spark.cluster.pacemaker.frames import Frames
from storm_on_spark.cluster.pacemaker.messages import Data, Message, MessageType, decode, frame
from storm_on_spark.runtime.processes.closing import Closing

IN_FLIGHT: Final = 100
"""Requests that wait for their replies at the same time, as in Storm's client."""
_PATIENCE: Final = 10
"""Factor on the timeout: the limit for all replies to `IN_FLIGHT` requests."""
_CHUNK: Final = 1 << 18

Request = tuple[MessageType, Data]
Send = Callable[[Message], None]
Receive = Callable[[], Message]
Login = Callable[[Send, Receive], None]
"""Logs in on a new connection."""


class Connection(Closing):
    """One connection, opened with the first request and again after a failure. Used by one thread.

    Args:
        server: `host:port`.
        settings: limits.
        login: called with every new connection, if there is one.

    Example:
        >>> with Connection("localhost:6699", settings) as connection:                  # doctest: +SKIP
        ...     connection.ask([(MessageType.SEND_PULSE, Pulse("/workerbeats/t-1/a-6700", b"..."))])
    """

    def __init__(self, server: str, settings: PacemakerSettings, login: Login | None = None) -> None:
        self.server = server
        self._settings = settings
        self._login = login
        self._socket: socket.socket | None = None
        self._frames = Frames(settings.most_bytes)
        self._waiting: list[Message] = []

    def ask(self, requests: Sequence[Request]) -> list[Message]:
        """Returns the reply to each request, in the requests' order.

        Raises:
            PacemakerError: the server can't be reached, hasn't answered in time or refuses. The requests may have been
                carried out; all of them can be sent again.
        """
        try:
            replies: list[Message] = []
            for start in range(0, len(requests), IN_FLIGHT):
                replies += self._ask(requests[start : start + IN_FLIGHT])
            return replies
        except (OSError, UnicodeError, WireError, AuthenticationError, SetupError) as error:
            # A malformed host name raises a UnicodeError.
            self.close()
            what = "has not answered in time" if isinstance(error, TimeoutError) else f"can't be used: {error}"
            raise PacemakerError(f"Pacemaker {self.server} {what}") from error
        except PacemakerError:
            self.close()
            raise

    def close(self) -> None:
        """Hangs up."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None

    def _ask(self, requests: Sequence[Request]) -> list[Message]:
        deadline = time.monotonic() + _PATIENCE * self._settings.timeout_secs
        connection = self._connected()
        connection.sendall(b"".join(frame(Message(*request, number)) for number, request in enumerate(requests)))
        replies: dict[int, Message] = {}
        while len(replies) < len(requests):
            reply = self._receive(deadline)
            # A reply to a request that was sent twice counts once.
            if 0 <= reply.id < len(requests):
                replies[reply.id] = self._checked(reply, requests[reply.id][0])
        return [replies[number] for number in range(len(requests))]

    def _checked(self, reply: Message, request: MessageType) -> Message:
        if reply.type is MessageType.NOT_AUTHORIZED:
            raise PacemakerError(f"Pacemaker {self.server} refuses {request.name}: not authorized")
        if reply.type is not request.reply:
            raise WireError(f"it answers {request.name} by {reply.type.name}")
        return reply

    def _connected(self) -> socket.socket:
        if self._socket is None:
            host, _, port = self.server.rpartition(":")
            host = host.strip("[]")
            made = socket.create_connection((host, int(port)), self._settings.timeout_secs)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._settings.tls is not None:
                made = self._settings.tls.wrap_socket(made, server_hostname=host)
            self._socket = made
            self._frames = Frames(self._settings.most_bytes)
            self._waiting = []
            if self._login is not None:
                deadline = time.monotonic() + _PATIENCE * self._settings.timeout_secs
                self._login(lambda message: made.sendall(frame(message)), lambda: self._receive(deadline))
        return self._socket

    def _receive(self, deadline: float) -> Message:
        """Returns the next message.

        Raises:
            TimeoutError: none came in time.
        """
        assert self._socket is not None
        while not self._waiting:
            if time.monotonic() > deadline:
                raise TimeoutError
            data = self._socket.recv(_CHUNK)
            if not data:
                raise ConnectionResetError("it hung up")
            self._waiting = [decode(payload) for payload in self._frames.feed(data)][::-1]
        return self._waiting.pop()
