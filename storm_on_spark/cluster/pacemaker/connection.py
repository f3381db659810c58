"""One connection of a Pacemaker server: bytes in, bytes out, and the limits on them."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import ssl
from typing import Final

from storm_on_spark.cluster.errors import AuthenticationError, WireError
from storm_on_spark.cluster.pacemaker.clients import Clients
from storm_on_spark.cluster.pacemaker.frames import Frames
from storm_on_spark.cluster.pacemaker.login.server import MOST_BEFORE
from storm_on_spark.cluster.pacemaker.messages import Control, Message, MessageType, control_of, decode, frame
from storm_on_spark.cluster.pacemaker.operations import Refused

logger = logging.getLogger(__name__)

_MOST_VALUES: Final = 1000
"""Fields of a request: Storm's have ten."""
_WRITE_BYTES: Final = 64 * 1024
"""Answers are collected up to this size: one system call for many."""
_LOGIN: Final = (MessageType.CONTROL_MESSAGE, MessageType.SASL_MESSAGE_TOKEN)


class Connection(asyncio.Protocol):
    """A client. Only the server's event loop touches it.

    Args:
        clients: of the server, and what they share.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._frames = Frames(clients.limits.message_bytes)
        #: Whole frames that wait until the other side has read earlier answers.
        self._waiting: collections.deque[bytes] = collections.deque()
        self._socket: asyncio.Transport | None = None
        #: None until answers may be written.
        self._transport: asyncio.Transport | None = None
        self._paused, self._paused_at = False, 0.0
        #: When the login began, and the message that has not come whole.
        self._login_at = self._part_at = self._heard = clients.now()
        self._refusal_logged = False
        self.address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes its place, or is closed."""
        if self.enter(transport):
            self.secured(transport)

    def enter(self, transport: asyncio.BaseTransport) -> bool:
        """Takes its place; without one the connection is closed.

        Args:
            transport: as it was accepted, before any TLS.
        """
        assert isinstance(transport, asyncio.Transport)
        self._socket = transport
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        self._gate = self._clients.gate(self.address)
        if self._clients.operations.rules.needs_login:
            # Incomplete frames are kept in memory, also of clients that have not logged in: limit them.
            self._frames.allow(min(MOST_BEFORE, self._clients.limits.message_bytes))
        if not self._clients.enter(self):
            transport.abort()
            return False
        return True

    def secured(self, transport: asyncio.BaseTransport) -> None:
        """Begins to answer.

        Args:
            transport: that carries answers; with TLS that of the handshake's end.
        """
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # More than one answer of the usual size, but not as much as the other side likes to leave unread.
        transport.set_write_buffer_limits(high=256 * 1024)
        # What came with the end of a handshake.
        self._work()

    def connection_lost(self, exc: Exception | None) -> None:
        """Gives its place back."""
        self._waiting.clear()
        self._clients.leave(self)

    def data_received(self, data: bytes) -> None:
        """Takes bytes, and answers what has come whole."""
        try:
            held = self._frames.held
            found = self._frames.feed(data)
        except WireError as error:
            self._drop(error)
            return
        if found or not held:
            self._part_at = self._clients.now()
        self._waiting.extend(found)
        self._work()

    def pause_writing(self) -> None:
        """Reads and answers nothing more until earlier answers are read."""
        self._paused, self._paused_at = True, self._clients.now()
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """Goes on."""
        self._paused = False
        self._work()
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def overdue(self, now: float) -> str | None:
        """Returns why the connection is to be closed; None if it isn't."""
        limits = self._clients.limits
        if self._paused:
            return "it doesn't read its answers" if now - self._paused_at > limits.stall_secs else None
        if self._gate.under_way and now - self._login_at > limits.login_secs:
            return "its login took too long"
        if self._frames.held and now - self._part_at > limits.login_secs:
            return "a message took too long"
        return "it was silent for too long" if now - self._heard > limits.idle_secs else None

    def drop(self, why: str) -> None:
        """Closes it at once, and says so."""
        self._drop(WireError(why))

    def abort(self) -> None:
        """Closes it at once."""
        transport = self._transport or self._socket
        if transport is not None:
            transport.abort()

    def _work(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        now = self._clients.now()
        answers: list[bytes] = []
        size = 0
        try:
            while self._waiting and not self._paused and not transport.is_closing():
                self._heard = now
                answer = self._answer(decode(self._waiting.popleft(), _MOST_VALUES), now)
                answers.append(answer)
                size += len(answer)
                if size >= _WRITE_BYTES:
                    transport.write(b"".join(answers))
                    answers, size = [], 0
        except (WireError, AuthenticationError) as error:
            self._drop(error)
            return
        except Exception as error:
            # Our own fault ends one connection, not the server.
            logger.error("A request failed", exc_info=error)
            self._drop(WireError("a fault of this server"))
            return
        if answers and not transport.is_closing():
            transport.write(b"".join(answers))

    def _answer(self, message: Message, now: float) -> bytes:
        if message.type in _LOGIN:
            return self._login(message)
        self._gate.other()
        try:
            return frame(self._clients.operations.answer(message, self._gate.who, now))
        except Refused as error:
            self._clients.metrics.count("pacemaker_requests_refused_total")
            if not self._refusal_logged:
                # Once a connection: a client that isn't allowed asks again and again.
                self._refusal_logged = True
                logger.warning("refused address=%s reason=%r", self.address, str(error))
            return frame(Message(MessageType.NOT_AUTHORIZED, None, message.id))

    def _login(self, message: Message) -> bytes:
        if message.type is MessageType.CONTROL_MESSAGE and control_of(message) is Control.CLOSE:
            assert self._transport is not None
            self._transport.close()
            return b""
        if not self._gate.under_way:
            self._login_at = self._heard
        answers = self._gate.take(message)
        if self._gate.who.role != "anyone":
            self._frames.allow(self._clients.limits.message_bytes)
            self._clients.metrics.count("pacemaker_logins_total")
            logger.info("login address=%s as=%r", self.address, str(self._gate.who))
        return b"".join(map(frame, answers))

    def _drop(self, error: WireError | AuthenticationError) -> None:
        failed = isinstance(error, AuthenticationError)
        name = "pacemaker_logins_failed_total" if failed else "pacemaker_connections_dropped_total"
        self._clients.metrics.count(name)
        logger.warning("closed address=%s reason=%r", self.address, str(error))
        self._waiting.clear()
        self.abort()


class TlsGate(asyncio.Protocol):
    """What is before TLS: a connection has its place before its handshake. asyncio's TLS server reports it later.

    Args:
        clients: of the server, and what they share.
        tls: the server's certificate and rules.
    """

    def __init__(self, clients: Clients, tls: ssl.SSLContext) -> None:
        self._connection = Connection(clients)
        self._clients = clients
        self._tls = tls
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes its place, and begins the handshake."""
        assert isinstance(transport, asyncio.Transport)
        if self._connection.enter(transport):
            self._handshake = asyncio.get_running_loop().create_task(self._begin(transport))

    async def _begin(self, transport: asyncio.Transport) -> None:
        secured = None
        # ssl.SSLError is an OSError.
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            secured = await asyncio.get_running_loop().start_tls(
                transport,
                self._connection,
                self._tls,
                server_side=True,
                ssl_handshake_timeout=self._clients.limits.login_secs,
            )
        if secured is None:
            self._clients.leave(self._connection)
            transport.abort()
        else:
            self._connection.secured(secured)
