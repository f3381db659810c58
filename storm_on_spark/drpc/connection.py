"""A Thrift connection to a DRPC server, as Storm's clients have it: frames, after a login where one is set."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.security.digest import THRIFT, Answering, Login
from storm_on_spark.cluster.security.tokens import read_tokens
from storm_on_spark.drpc.credentials import login_of
from storm_on_spark.drpc.errors import DRPCExceptionType, DRPCExecutionException
from storm_on_spark.drpc.interface import from_wire, interface

MOST_BYTES: Final = 1 << 24
"""Of an answer."""
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
        from thriftpy2.protocol.binary import TBinaryProtocol
        from thriftpy2.thrift import TApplicationException, TMessageType
        from thriftpy2.transport import TMemoryBuffer

        types = getattr(interface(), self._service)
        wanted = getattr(types, f"{method}_args")()
        for number, value in enumerate(arguments, 1):
            setattr(wanted, wanted.thrift_spec[number][1], value)
        out = TMemoryBuffer()
        writing = TBinaryProtocol(out)
        self._number = (self._number + 1) & 0x7FFFFFFF
        writing.write_message_begin(method, TMessageType.CALL, self._number)
        writing.write_struct(wanted)
        writing.write_message_end()
        data = out.getvalue()
        try:
            connected = self._connected()
            connected.settimeout(self._timeout if secs is None else secs)
            connected.sendall(struct.pack("!i", len(data)) + data)
            frame = self._frame(connected)
        except BaseException:
            # What comes later would be the answer to this call.
            self.close()
            raise
        reading = TBinaryProtocol(TMemoryBuffer(frame))
        _, kind, _ = reading.read_message_begin()
        if kind == TMessageType.EXCEPTION:
            refused = TApplicationException()
            reading.read_struct(refused)
            if refused.type == TApplicationException.UNKNOWN_METHOD:
                raise NotImplementedError(method)
            raise DRPCExecutionException(f"{self.address}: {refused.message}", DRPCExceptionType.INTERNAL_ERROR)
        result = getattr(types, f"{method}_result")()
        reading.read_struct(result)
        if getattr(result, "e", None) is not None:
            raise from_wire(result.e)
        if getattr(result, "aze", None) is not None:
            raise AuthenticationError(f"{self.address}: {result.aze.msg}")
        return getattr(result, "success", None)

    def close(self) -> None:
        """Ends the connection; a second time does nothing. Another thread's call ends with an `OSError`."""
        known, self._socket = self._socket, None
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

    def _frame(self, connected: socket.socket) -> bytes:
        (length,) = struct.unpack("!i", _exactly(connected, 4, self.address))
        if not 0 < length <= MOST_BYTES:
            raise ConnectionError(f"{self.address}: an answer has 1 to {MOST_BYTES:,} bytes, and this one {length:,}")
        return _exactly(connected, length, self.address)


def _exactly(connected: socket.socket, size: int, address: Address) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = connected.recv(size - len(found))
        if not part:
            raise ConnectionError(f"{address} has closed the connection")
        found += part
    return bytes(found)
