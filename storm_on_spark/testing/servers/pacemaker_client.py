"""A client that speaks Pacemaker's messages over a plain socket, one after the other."""

from __future__ import annotations

import socket
import ssl

from storm_on_spark.cluster.pacemaker.frames import Frames
from storm_on_spark.cluster.pacemaker.messages import (
    Control,
    Data,
    Message,
    MessageType,
    control,
    control_of,
    decode,
    frame,
    sasl_token,
    token_of,
)
from storm_on_spark.cluster.security.digest import Answering, Login


class RawClient:
    """One connection; closed at the end of a `with` statement.

    Args:
        port: of a Pacemaker on this machine, this project's or Storm's.
        timeout: in seconds, for each wait.
        tls: checks the server; None for a connection without TLS.

    Example:
        >>> from storm_on_spark.cluster.pacemaker.server import PacemakerServer
        >>> with PacemakerServer({}, port=0) as server, RawClient(server.port) as client:
        ...     client.ask(MessageType.EXISTS, "/a").data
        False
    """

    def __init__(self, port: int, timeout: float = 30, tls: ssl.SSLContext | None = None) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self._frames = Frames()
        self._waiting: list[bytes] = []
        self._number = 0

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *messages: Message) -> None:
        """Sends messages, without waiting for answers."""
        self.socket.sendall(b"".join(map(frame, messages)))

    def receive(self) -> Message:
        """Returns the next message; raises ConnectionResetError if the server hung up."""
        while not self._waiting:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionResetError("the server hung up")
            self._waiting.extend(self._frames.feed(data))
        return decode(self._waiting.pop(0))

    def ask(self, type_: MessageType, data: Data = None) -> Message:
        """Sends a request with its own number, and returns the answer to it."""
        self._number = (self._number + 1) % 100
        self.send(Message(type_, data, self._number))
        answer = self.receive()
        while answer.type is MessageType.CONTROL_MESSAGE:
            # Storm's server says twice that a login with Kerberos is done.
            answer = self.receive()
        assert answer.id == self._number
        return answer

    def log_in(self, login: Login) -> None:
        """Logs in by DIGEST-MD5, as Storm's client does."""
        client = Answering(login)
        self.send(control(Control.SASL_TOKEN_MESSAGE_REQUEST))
        self.send(sasl_token(client.answer(token_of(self.receive()))))
        client.check(token_of(self.receive()))
        assert control_of(self.receive()) is Control.SASL_COMPLETE_REQUEST

    def hung_up(self) -> bool:
        """Waits until the server sends something or hangs up; returns whether it hung up."""
        try:
            return not self.socket.recv(65536)
        except ConnectionError:
            return True
