"""The server's side of a login: messages in, messages out; no I/O.

A client logs in before anything else, or not at all. It begins with the control code -202 (DIGEST-MD5) or with a token
(GSSAPI), as Storm's clients do. What doesn't fit ends the connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from storm_on_spark.cluster.errors import AuthenticationError, WireError
from storm_on_spark.cluster.pacemaker.access import Identity, Method
from storm_on_spark.cluster.pacemaker.login.identities import topology_login, topology_of
from storm_on_spark.cluster.pacemaker.messages import (
    Control,
    Message,
    MessageType,
    control,
    control_of,
    sasl_token,
    token_of,
)
from storm_on_spark.cluster.security import digest
from storm_on_spark.cluster.security.digest import Login
from storm_on_spark.cluster.security.tokens import Tokens

_MOST_TOKEN: Final = 64 * 1024
"""Bytes of a step of a login: a Kerberos ticket with many groups has some ten thousand."""
MOST_BEFORE: Final = 2 * _MOST_TOKEN
"""Most bytes of a message before a login, where every operation needs one."""


class Mechanism(Protocol):
    """A login with Kerberos, on one connection."""

    def step(self, token: bytes) -> tuple[bytes | None, str | None]:
        """Takes a client's token.

        Returns:
            What to answer, if anything, and the name of the client once it is known.

        Raises:
            AuthenticationError: it is not one of those who may.
        """


class Gate:
    """One connection's login.

    Args:
        method: the server's.
        daemon: the login of Nimbuses with DIGEST.
        tokens: the cluster's secret, for logins of topologies.
        kerberos: begins a login with Kerberos.
        address: of the client, as its name while it is anyone.
    """

    def __init__(
        self,
        method: Method,
        daemon: Login | None,
        tokens: Tokens | None,
        kerberos: Callable[[], Mechanism] | None,
        address: str,
    ) -> None:
        self._method = method
        self._daemon = daemon
        self._tokens = tokens
        self._kerberos = kerberos
        self._nonce: str | None = None
        self._mechanism: Mechanism | None = None
        self._closed = False
        self.who = Identity("anyone", address)

    @property
    def under_way(self) -> bool:
        """Whether a login has begun and is not done."""
        return not self._closed and (self._nonce is not None or self._mechanism is not None)

    def other(self) -> None:
        """Notes that a request has come: there is no login after that.

        Raises:
            AuthenticationError: a login is under way.
        """
        if self.under_way:
            raise AuthenticationError("the client sent a request in the middle of a login")
        self._closed = True

    def take(self, message: Message) -> list[Message]:
        """Takes a message of a login, and returns the answers to it.

        Raises:
            AuthenticationError: the client is not who it says, or this is not the time for it.
            WireError: it is not a message of a login.
        """
        if self._closed:
            raise AuthenticationError("the client began a login after the connection was in use")
        if message.type is MessageType.CONTROL_MESSAGE:
            return self._begin(control_of(message))
        token = token_of(message)
        if len(token) > _MOST_TOKEN:
            raise WireError(f"a message of a login may have at most {_MOST_TOKEN:,} bytes, not {len(token):,}")
        return self._digest(token, self._nonce) if self._nonce is not None else self._gssapi(token)

    def _begin(self, code: Control) -> list[Message]:
        if code is not Control.SASL_TOKEN_MESSAGE_REQUEST or self.under_way:
            raise WireError(f"control code {code.name} is not allowed at this point of the connection")
        if self._daemon is None and self._tokens is None:
            raise AuthenticationError(f"the client logs in by DIGEST, but this server's method is {self._method}")
        self._nonce = digest.new_nonce()
        return [sasl_token(digest.challenge(self._nonce))]

    def _digest(self, token: bytes, nonce: str) -> list[Message]:
        answer = digest.read_answer(token, nonce)
        name = answer.name
        topology = topology_of(name)
        if topology is not None:
            known = [] if self._tokens is None else [topology_login(each, topology) for each in self._tokens.all]
            who = Identity("topology", topology)
        else:
            known = [] if self._daemon is None else [self._daemon]
            who = Identity("daemon", name)
        for login in known:
            last = digest.verify(answer, login.secret)
            if last is not None:
                self.who, self._closed = who, True
                # As Storm's server: its last token, and that it is the last.
                return [sasl_token(last), control(Control.SASL_COMPLETE_REQUEST)]
        raise AuthenticationError(f"a wrong secret of {name!r:.80}")

    def _gssapi(self, token: bytes) -> list[Message]:
        if self._kerberos is None:
            raise AuthenticationError(f"the client logs in by Kerberos, but this server's method is {self._method}")
        if self._mechanism is None:
            self._mechanism = self._kerberos()
        answer, name = self._mechanism.step(token)
        answers = [] if answer is None else [sasl_token(answer)]
        if name is not None:
            self.who, self._closed = Identity("daemon", name), True
            answers.append(control(Control.SASL_COMPLETE_REQUEST))
        return answers
