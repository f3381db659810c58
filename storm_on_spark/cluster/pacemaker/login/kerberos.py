"""SASL GSSAPI (RFC 4752) with Kerberos, both sides, without a security layer.

Needs the extra `kerberos`.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any, Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.text.extras import install_extra
from storm_on_spark.cluster.errors import AuthenticationError
from storm_on_spark.cluster.pacemaker.login.identities import KerberosIdentity

_NO_LAYER: Final = b"\x01\x00\x00\x00"
"""The server's offer: no security layer, so no size of a message in it."""
_PRINCIPAL: Final = re.compile(r"([^/@\s]+)(/[^/@\s]+)?@([^/@\s]+)")


def load_gssapi() -> Any:
    """Returns the module `gssapi`.

    Raises:
        SetupError: it is not installed, or finds no Kerberos libraries.
    """
    try:
        return importlib.import_module("gssapi")
    except (ImportError, OSError) as error:
        raise SetupError(
            f"Kerberos needs the package gssapi ({install_extra('kerberos')}) and the system's Kerberos "
            f"libraries: {error}"
        ) from error


class KerberosServer:
    """What a server takes Kerberos logins by.

    Args:
        identity: its principal and key table, and who may log in.

    Raises:
        SetupError: Kerberos is not there, or the key table can't be used.
    """

    def __init__(self, identity: KerberosIdentity) -> None:
        self._gssapi = load_gssapi()
        self._identity = identity
        parts = _PRINCIPAL.fullmatch(identity.principal)
        if parts is None:
            raise SetupError(f"{identity.principal!r} is not a principal: name@REALM, or name/host@REALM")
        self._realm = parts[3]
        if not Path(identity.keytab).is_file():
            raise SetupError(f"key table {identity.keytab} is not there")
        try:
            name = self._gssapi.Name(identity.principal, self._gssapi.NameType.kerberos_principal)
            self._credentials = self._gssapi.Credentials(
                name=name, usage="accept", store={"keytab": f"FILE:{identity.keytab}"}
            )
        except self._gssapi.exceptions.GSSError as error:
            raise SetupError(f"key table {identity.keytab}, {identity.principal}: {error}") from error

    def begin(self) -> KerberosLogin:
        """Returns a login, for one connection."""
        return KerberosLogin(self._gssapi, self._credentials, self._allowed)

    def _allowed(self, principal: str) -> bool:
        parts = _PRINCIPAL.fullmatch(principal)
        # A name of another realm is another's, whatever its first part is.
        if parts is None or parts[3] != self._realm:
            return principal in self._identity.users
        return parts[1] in self._identity.users or principal in self._identity.users


class KerberosLogin:
    """The server's side of one login: the client's ticket, then the choice of no security layer."""

    def __init__(self, gssapi: Any, credentials: Any, allowed: Any) -> None:
        self._gssapi = gssapi
        self._context = gssapi.SecurityContext(creds=credentials, usage="accept")
        # Otherwise a refusal is a token for the client, and an error only once the client has answered to it.
        self._context.__DEFER_STEP_ERRORS__ = False
        self._allowed = allowed
        self._offered = False

    def step(self, token: bytes) -> tuple[bytes | None, str | None]:
        """Takes a client's token; see `login.Mechanism`."""
        try:
            if not self._context.complete:
                answer = self._context.step(token)
                if answer:
                    return bytes(answer), None
                return self._offer(), None
            if not self._offered:
                if token:
                    raise AuthenticationError("the client sent a token where an empty message was expected")
                return self._offer(), None
            return None, self._name(bytes(self._context.unwrap(token).message))
        except self._gssapi.exceptions.GSSError as error:
            raise AuthenticationError(f"Kerberos refuses a login: {error}") from None

    def _offer(self) -> bytes:
        self._offered = True
        return bytes(self._context.wrap(_NO_LAYER, False).message)

    def _name(self, choice: bytes) -> str:
        principal = str(self._context.initiator_name)
        if len(choice) < len(_NO_LAYER) or choice[0] != _NO_LAYER[0]:
            raise AuthenticationError(f"{principal} asks for a SASL security layer, which is not supported; use TLS")
        if choice[4:] not in (b"", principal.encode()):
            raise AuthenticationError(f"{principal} asks to act as another principal, which is not allowed")
        if not self._allowed(principal):
            raise AuthenticationError(f"{principal} is none of pacemaker.kerberos.users")
        return principal


class KerberosClient:
    """A client's login, on one connection.

    Args:
        service: of the server's principal, `pacemaker` as a rule.
        host: of the server's principal.
        keytab: the client's key table; None for the user's tickets.
        principal: the client's; None for that of its tickets.

    Raises:
        SetupError: Kerberos is not there.
        AuthenticationError: there is no ticket for the server.
    """

    def __init__(self, service: str, host: str, keytab: Path | None = None, principal: str | None = None) -> None:
        self._gssapi = gssapi = load_gssapi()
        try:
            name = None if principal is None else gssapi.Name(principal, gssapi.NameType.kerberos_principal)
            # Tickets are kept by principal, so a client that connects again asks the KDC for none.
            tickets = f"MEMORY:pacemaker-{principal}"
            store = None if keytab is None else {"client_keytab": f"FILE:{keytab}", "ccache": tickets}
            credentials = gssapi.Credentials(name=name, usage="initiate", store=store)
            self._context = gssapi.SecurityContext(
                name=gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service),
                creds=credentials,
                usage="initiate",
                flags=[gssapi.RequirementFlag.mutual_authentication, gssapi.RequirementFlag.integrity],
            )
        except gssapi.exceptions.GSSError as error:
            raise AuthenticationError(f"no Kerberos login at {service}@{host}: {error}") from None

    def step(self, token: bytes | None = None) -> bytes:
        """Returns the next token for the server.

        Args:
            token: of the server; None for the first step.

        Raises:
            AuthenticationError: Kerberos refuses, or the server wants a security layer.
        """
        try:
            if not self._context.complete:
                return bytes(self._context.step(token) or b"")
            offer = bytes(self._context.unwrap(token or b"").message)
            if len(offer) != len(_NO_LAYER) or not offer[0] & _NO_LAYER[0]:
                raise AuthenticationError("the server asks for a SASL security layer, which is not supported; use TLS")
            return bytes(self._context.wrap(_NO_LAYER, False).message)
        except self._gssapi.exceptions.GSSError as error:
            raise AuthenticationError(f"Kerberos refuses a login: {error}") from None
