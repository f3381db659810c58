"""A connection of the HTTP server, with what `ConnectionLimits` says about it carried out.

A connection whose first byte is `FIRST_BYTE` has frames instead of HTTP, where the server has something to answer them.
Where frames need a login, such a connection begins with `LOGIN_BYTE`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import ssl
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from storm_on_spark.cluster.http.frames import (
    FIRST_BYTE,
    LOGIN_BYTE,
    FrameError,
    FrameLogin,
    FrameReader,
    FrameService,
    LoginError,
    framed,
)
from storm_on_spark.cluster.http.limits import DEFAULT, ConnectionLimits, Limits

logger = logging.getLogger(__name__)

_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_CLOSING_TURNS: Final = 100

#: What uvicorn says of a connection. Its warnings are of what others send: they have no address, and their number no
#: end.
_uvicorn = logging.getLogger(f"{__name__}.uvicorn")
_uvicorn.setLevel(logging.ERROR)


class Connections:
    """The connections of one server, by number. Only its event loop touches it.

    Args:
        limits: what it bears.
        tls: what each connection begins with; None for none.
        frames: what answers connections that have frames; None if all have HTTP.
    """

    def __init__(
        self, limits: Limits = DEFAULT, tls: ssl.SSLContext | None = None, frames: FrameService | None = None
    ) -> None:
        self.limits = limits
        self.tls = tls
        self.frames = frames
        self.pool = None if frames is None else ThreadPoolExecutor(frames.threads, "frames")
        self.places = ConnectionLimits(limits)
        self.transports: dict[int, asyncio.BaseTransport] = {}
        self._numbers = itertools.count()

    def protocol(self, **arguments: Any) -> asyncio.Protocol:
        """Makes a connection, as uvicorn asks for one."""
        inner = LimitedProtocol(self, next(self._numbers), **arguments)
        return inner if self.tls is None else TlsGate(self, inner, self.tls)

    def enter(self, number: int, transport: asyncio.BaseTransport, now: float) -> bool:
        """Takes a connection in; whether there is a place for it, for which another may have to go."""
        address = transport.get_extra_info("peername")
        entered = self.places.enter(number, str(address[0]) if address else "", now)
        for victim in self.places.to_close():
            _abort(self.transports[victim])
        if entered:
            self.transports[number] = transport
        return entered

    def leave(self, number: int) -> None:
        """Gives a place back."""
        self.places.leave(number)
        self.transports.pop(number, None)

    async def close(self) -> None:
        """Ends all connections at once; returns when their sockets are closed, which takes some turns of the loop."""
        for _ in range(_CLOSING_TURNS):
            for transport in list(self.transports.values()):
                _abort(transport)
            await asyncio.sleep(0)
            if not self.transports:
                return


class TlsGate(asyncio.Protocol):
    """What is before TLS: a connection has a place, and a deadline, before its handshake and not after that.

    asyncio's own TLS server tells nobody of a connection before its handshake is done.

    Args:
        connections: the server's connections.
        inner: what speaks HTTP.
        tls: the server's certificate and rules.
    """

    def __init__(self, connections: Connections, inner: LimitedProtocol, tls: ssl.SSLContext) -> None:
        self._connections = connections
        self._inner = inner
        self._tls = tls
        self._handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes it in, or hangs up: without TLS there is nothing that could be said."""
        assert isinstance(transport, asyncio.Transport)
        loop = self._inner.loop
        if self._connections.enter(self._inner.number, transport, loop.time()):
            # It begins before the loop looks for what has come: nothing of the handshake is read here.
            self._handshake = loop.create_task(self._begin(loop, transport))
        else:
            transport.abort()

    async def _begin(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        try:
            secured = await loop.start_tls(
                transport,
                self._inner,
                self._tls,
                server_side=True,
                ssl_handshake_timeout=self._connections.limits.head_secs,
            )
        except (OSError, asyncio.TimeoutError):  # ssl.SSLError is one
            secured = None
        if secured is None:
            self._connections.leave(self._inner.number)
            transport.abort()
        else:
            self._inner.connection_made(secured)


class LimitedProtocol(H11Protocol):
    """uvicorn's connection, which leaves it to the other side for how long it stays.

    Args:
        connections: the server's connections.
        number: of this one.
        arguments: uvicorn's.
    """

    def __init__(self, connections: Connections, number: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.logger = _uvicorn
        self._connections = connections
        self.number = number
        self._timer: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._made = False
        #: What came with the end of a handshake, before there was a connection to take it; None from then on.
        self._early: list[bytes] | None = []
        #: Whether nothing has come yet.
        self._fresh = True
        #: Whether input is no longer read, because it is not HTTP.
        self._refused = False
        self._frames: FrameReader | None = None
        #: The login that is under way.
        self._login: FrameLogin | None = None
        #: Who logged in.
        self._user: str | None = None
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes it in, or says that there is no place."""
        super().connection_made(transport)
        self._made = True
        connections, now = self._connections, self.loop.time()
        if connections.tls is not None:
            # It has its place since before its handshake; it may have lost it since.
            if self.number not in connections.transports:
                transport.abort()
                return
            connections.transports[self.number] = transport
        elif not connections.enter(self.number, transport, now):
            transport.write(_FULL)
            transport.close()
            # Not even that may be waited for for long.
            self._timer = self.loop.call_later(connections.limits.head_secs, self.abort)
            return
        self._watch()
        early, self._early = self._early or [], None
        for data in early:
            self.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Gives its place back."""
        self._connections.leave(self.number)
        if self._answering is not None and self._connections.frames is not None and self._connections.frames.on_loop:
            self._answering.cancel()
        for timer in (self._timer, self._stall):
            if timer is not None:
                timer.cancel()
        if self._made:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes bytes of a request."""
        if self._refused:
            return
        if self._early is not None:
            self._early.append(data)
            return
        service = self._connections.frames
        if self._fresh and service is not None:
            self._choose(data, service)
        self._fresh = False
        if self._frames is not None:
            if self._login is not None:
                data = self._log_in(self._login, data)
            if self.transport.is_closing():
                return
            self._frames.feed(data)
            if self._answering is None and self._login is None:
                self._next_frame(self._frames, service)
            elif self._frames.full:
                self.transport.pause_reading()
            return
        super().data_received(data)
        self._note(len(data))

    def on_response_complete(self) -> None:
        """Waits for the next request."""
        self._connections.places.idle(self.number, self.loop.time())
        super().on_response_complete()
        self._note(0)

    def send_400_response(self, msg: str) -> None:
        """Refuses what is not a request, or has too long a head; uvicorn calls it while it handles h11's error.

        The connection ends when the client has read the answer, or at the deadline of the head: if it were closed
        with bytes unread, the client's system could drop the answer.
        """
        # None before the first request, whatever uvicorn declares.
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:  # a body that is none
            self.abort()
            return
        error = sys.exc_info()[1]
        status = HTTPStatus(error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400)
        text = f"{status.phrase}: {error}\n".encode("ascii", "backslashreplace")
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        )
        self._refused = True
        self.transport.write(head.encode() + text)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def pause_writing(self) -> None:
        """Gives the other side a while to read on."""
        super().pause_writing()
        if self._stall is None:
            self._stall = self.loop.call_later(self._connections.limits.write_secs, self.abort)

    def resume_writing(self) -> None:
        """It does."""
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def abort(self) -> None:
        """Ends it at once, whatever is still to be sent."""
        _abort(self.transport)

    def _choose(self, data: bytes, service: FrameService) -> None:
        """Makes it a connection with frames, if the first byte is theirs."""
        if data.startswith(FIRST_BYTE if service.login is None else (FIRST_BYTE, LOGIN_BYTE)):
            self._frames = FrameReader(service.limit)
            if service.login is not None:
                if data.startswith(FIRST_BYTE):
                    self._hang_up(FrameError("the client did not log in, and this server needs a login (SASL)"))
                else:
                    self._login = service.login()

    def _log_in(self, login: FrameLogin, data: bytes) -> bytes:
        """Continues a login, and returns what came after it."""
        try:
            answer = login.feed(data)
        except LoginError as error:
            # The client is told, and has a moment to read it.
            self.transport.write(error.answer)
            self.transport.pause_reading()
            logger.warning("A Thrift connection from %s is closed: %s", self.client, error)
            self.transport.close()
            return b""
        self.transport.write(answer)
        if login.user is None:
            return b""
        self._user = login.user
        logger.info("A Thrift connection from %s is that of user %r", self.client, login.user)
        self._login = None
        self._connections.places.idle(self.number, self.loop.time())
        return login.rest

    def _next_frame(self, frames: FrameReader, service: FrameService | None) -> None:
        places, now = self._connections.places, self.loop.time()
        try:
            frame = frames.next()
        except FrameError as error:
            self._hang_up(error)
            return
        if frame is None or service is None:
            if frames.begun:
                places.heard(self.number, now)
            self._watch()
            return
        places.busy(self.number, now)
        self._watch()
        # One call at a time: others wait in the socket. Without reading one doesn't see that the client is gone.
        if not service.on_loop:
            self.transport.pause_reading()
            quick = cast(Callable[[bytes, str | None], bytes], service.answer)
            found: Awaitable[bytes] = self.loop.run_in_executor(self._connections.pool, quick, frame, self._user)
        else:
            try:
                answer = service.answer(frame, self._user)
            except FrameError as error:
                self._hang_up(error)
                return
            if isinstance(answer, bytes) and not self.flow.write_paused:
                # Without a task, which takes a turn of the loop. What came after it waits for the next turn.
                self.transport.write(framed(answer))
                self._answering = self.loop.create_task(self._go_on(frames, service)) if frames.begun else None
                self._idle()
                return
            found = _known(answer) if isinstance(answer, bytes) else answer
        self._answering = self.loop.create_task(self._answer_frame(found, frames, service))

    async def _answer_frame(self, found: Awaitable[bytes], frames: FrameReader, service: FrameService) -> None:
        try:
            answer = await found
        except FrameError as error:
            self._hang_up(error)
            return
        if self.transport.is_closing():
            return
        self.transport.write(framed(answer))
        await self._go_on(frames, service)

    async def _go_on(self, frames: FrameReader, service: FrameService) -> None:
        await self.flow.drain()
        self._answering = None
        if not self.transport.is_closing():
            self._idle()
            self.transport.resume_reading()
            self._next_frame(frames, service)

    def _idle(self) -> None:
        self._connections.places.idle(self.number, self.loop.time())
        self._watch()

    def _hang_up(self, error: FrameError) -> None:
        logger.warning("A Thrift connection from %s is closed: %s", self.client, error)
        self.abort()

    def _note(self, received: int) -> None:
        """Updates the phase of the connection after bytes were received."""
        places, now = self._connections.places, self.loop.time()
        # None before the first request, whatever uvicorn declares.
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            if cycle.more_body:
                places.body(self.number, received, now)
            else:
                places.busy(self.number, now)
        elif received:
            places.heard(self.number, now)
        self._watch()

    def _watch(self) -> None:
        """Schedules the next check of the connection, when its time is over."""
        deadline = self._connections.places.deadline(self.number)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline is not None:
            self._timer = self.loop.call_at(deadline, self.abort)


async def _known(answer: bytes) -> bytes:
    return answer


def _abort(transport: asyncio.BaseTransport) -> None:
    assert isinstance(transport, asyncio.WriteTransport)
    transport.abort()
