"""A Thrift connection to a DRPC server, as Storm's clients have it: frames, after a login where one is set."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from storm_on_spark.api.config import Config
from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.security.digest import THRIFT, Answering, Login
from storm_on_spark.cluster.security.tokens import read_tokens
from storm_on_spark.drpc.credentials import login_of
from storm_on_spark.drpc.errors import DRPCExecutionException
from storm_on_spark.drpc.messages import UnknownAnswerError, decode_answer, encode_call

MOST_BYTES: Final = 1 << 25
"""Of an answer. A server takes calls of up to 16 MB, and hands out no more than one such request at a time."""
_READ_BYTES: Final = 1 << 16
_LENGTH: Final = struct.Struct("!i")
_HEAD: Final = struct.Struct("!Bi")
_START, _OK, _COMPLETE = 1, 2, 5
_MOST_LOGIN: Final = 4096
_CONNECT_SECS: Final = 10.0


@dataclass(frozen=True)
class Address:
    """Where a DRPC server is, and how to log in there. It can be pickled: secrets stay in files.

    Args:
        host: of the server.
        port: of the Thrift service.
        token_file: the file with its token; None where it asks for none.
        ca_file: the file with the CA of its certificate; None without TLS.
    """

    host: str
    port: int
    token_file: str | None = None
    ca_file: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Answer(NamedTuple):
    """An answer that has come."""

    value: Any


class DRPCConnection:
    """Calls methods of one server, one at a time. It connects with the first call, and again after an error.

    Args:
        address: of the server.
        service: `DistributedRPC` or `DistributedRPCInvocations`.
        timeout_secs: how long an answer may take; None for ever.
    """

    def __init__(self, address: Address, service: str, timeout_secs: float | None = None) -> None:
        self._socket: socket.socket | None = None
        self.address = address
        self._service = service
        self._timeout = timeout_secs
        self._number = 0
        #: What has come of the next answers.
        self._came = bytearray()
        #: Whether anything has ever come.
        self._heard = False

    def call(self, method: str, *arguments: Any, secs: float | None = None) -> Any:
        """Returns what a method returns.

        Args:
            method: its name.
            arguments: in the interface's order.
            secs: how long the answer may take; None for the connection's time.

        Raises:
            DRPCExecutionException: the server raised it.
            AuthenticationError: the server does not let this client in.
            NotImplementedError: the server does not know the method.
            OSError: the connection broke, or the answer took too long.
        """
        try:
            connected = self._connected()
            connected.settimeout(self._timeout if secs is None else secs)
            connected.sendall(self._asked(method, arguments))
            while (frame := self._frame()) is None:
                self._take(connected.recv(_READ_BYTES))
        except BaseException:
            # What comes later would be the answer to this call.
            self.close()
            raise
        return self._read(method, frame)

    def ask(self, method: str, *arguments: Any) -> None:
        """Calls a method without waiting for the answer, which is then asked for by `answer`. Errors as for `call`."""
        try:
            connected = self._connected()
            connected.settimeout(self._timeout)
            connected.sendall(self._asked(method, arguments))
        except BaseException:
            self.close()
            raise

    def answer(self, method: str) -> Answer | None:
        """Returns the answer to `ask` if it has come; otherwise None, without waiting. Errors as for `call`."""
        connected = self._socket
        if connected is None:
            raise ConnectionError(f"the connection to {self.address} is closed")
        try:
            connected.settimeout(0.0)
            while (frame := self._frame()) is None:
                try:
                    self._take(connected.recv(_READ_BYTES))
                except (BlockingIOError, ssl.SSLWantReadError):
                    return None
        except BaseException:
            self.close()
            raise
        return Answer(self._read(method, frame))

    def fileno(self) -> int:
        """Returns the descriptor, which is ready when `answer` has something to read; -1 without a connection."""
        return -1 if self._socket is None else self._socket.fileno()

    def _asked(self, method: str, arguments: tuple[Any, ...]) -> bytes:
        self._number = (self._number + 1) & 0x7FFFFFFF
        data = encode_call(self._service, method, self._number, arguments)
        return _LENGTH.pack(len(data)) + data

    def _read(self, method: str, frame: bytes) -> Any:
        try:
            return decode_answer(self._service, method, frame)
        except DRPCExecutionException as error:
            raise error
        except UnknownAnswerError as error:
            self.close()
            raise ConnectionError(f"{self.address} speaks no DRPC of Storm's: {error}") from error
        except AuthenticationError as error:
            raise AuthenticationError(f"{self.address}: {error}") from None

    def close(self) -> None:
        """Ends the connection; a second time does nothing. Another thread's call ends with an `OSError`."""
        known, self._socket = self._socket, None
        self._came.clear()
        if known is not None:
            with contextlib.suppress(OSError):
                known.shutdown(socket.SHUT_RDWR)
            known.close()

    def __del__(self) -> None:
        # Bolts end with their process, which tells them only now and then.
        self.close()

    def _connected(self) -> socket.socket:
        if self._socket is None:
            address = self.address
            made = socket.create_connection((address.host, address.port), _CONNECT_SECS)
            try:
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if address.ca_file is not None:
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                    context.load_verify_locations(cafile=address.ca_file)
                    made = context.wrap_socket(made, server_hostname=address.host)
                if address.token_file is not None:
                    self._log_in(made, login_of(read_tokens(Path(address.token_file))[0]))
            except BaseException:
                made.close()
                raise
            self._socket = made
        return self._socket

    def _log_in(self, connected: socket.socket, login: Login) -> None:
        client = Answering(login, dialect=THRIFT)
        connected.sendall(_HEAD.pack(_START, 10) + b"DIGEST-MD5" + _HEAD.pack(_OK, 0))
        status, challenge = self._login_message(connected)
        if status == _OK:
            answer = client.answer(challenge)
            connected.sendall(_HEAD.pack(_OK, len(answer)) + answer)
            status, last = self._login_message(connected)
        if status != _COMPLETE:
            raise AuthenticationError(f"{self.address}: the DRPC server does not know the token of this client")
        client.check(last)

    def _login_message(self, connected: socket.socket) -> tuple[int, bytes]:
        status, length = _HEAD.unpack(_exactly(connected, _HEAD.size, self.address))
        if not 0 <= length <= _MOST_LOGIN:
            raise ConnectionError(f"{self.address} speaks no login of Storm's")
        return status, _exactly(connected, length, self.address)

    def _take(self, data: bytes) -> None:
        if not data:
            # A server that needs a login says nothing else to a client that has none.
            unknown = self.address.token_file is None and not self._heard
            hint = f"; if it needs a login, set {Config.NIMBUS_AUTH_TOKEN_FILE}" if unknown else ""
            raise ConnectionError(f"{self.address} has closed the connection{hint}")
        self._heard = True
        self._came += data

    def _frame(self) -> bytes | None:
        """Returns the next answer; None until it is whole."""
        came = self._came
        if len(came) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(came)
        if not 0 < length <= MOST_BYTES:
            raise ConnectionError(f"{self.address}: an answer has 1 to {MOST_BYTES:,} bytes, and this one {length:,}")
        end = _LENGTH.size + length
        if len(came) < end:
            return None
        frame = bytes(came[_LENGTH.size : end])
        del came[:end]
        return frame


def _exactly(connected: socket.socket, size: int, address: Address) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = connected.recv(size - len(found))
        if not part:
            raise ConnectionError(f"{address} has closed the connection")
        found += part
    return bytes(found)
