"""By which names and secrets Nimbuses, topologies and servers log in: from the configuration and JAAS files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import msgspec

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.pacemaker.access import Method
from storm_on_spark.cluster.security.digest import Login, storm_secret
from storm_on_spark.cluster.security.jaas import read_jaas
from storm_on_spark.cluster.security.tokens import derived, mac

_PURPOSE: Final = "pacemaker"
_TOPOLOGY: Final = "topology:"


@dataclass(frozen=True)
class LoginSettings(Settings):
    """What the configuration says of logins at a Pacemaker."""

    method: Annotated[Method, Config.PACEMAKER_AUTH_METHOD]
    writes: Annotated[bool, Config.PACEMAKER_AUTH_WRITES]
    """Whether writes need a login, too."""
    payload: Annotated[str | None, Config.PACEMAKER_AUTH_PAYLOAD] = field(repr=False)
    """`user:password`; a secret."""
    jaas_file: Annotated[str | None, Config.JAVA_SECURITY_AUTH_LOGIN_CONFIG]
    kerberos_principal: Annotated[str | None, Config.PACEMAKER_KERBEROS_PRINCIPAL]
    kerberos_keytab: Annotated[str | None, Config.PACEMAKER_KERBEROS_KEYTAB]
    kerberos_users: Annotated[tuple[str, ...], Config.PACEMAKER_KERBEROS_USERS]

    def sections(self) -> dict[str, dict[str, str]]:
        """Returns the sections of the JAAS file; none if no file is named.

        Raises:
            SetupError: the file can't be used.
        """
        return {} if self.jaas_file is None else read_jaas(self.jaas_file)


class KerberosIdentity(msgspec.Struct, frozen=True):
    """The key and the users with which a server accepts Kerberos logins."""

    principal: str
    keytab: Path
    users: tuple[str, ...]
    """Short names, or whole principals."""


def daemon_login(settings: LoginSettings, sections: Mapping[str, Mapping[str, str]] | None = None) -> Login:
    """Returns the login of a Nimbus with DIGEST, as Storm's client has it.

    Args:
        settings: with a payload, or a JAAS file that has the section `PacemakerDigest`.
        sections: of that file, where it was read already.

    Raises:
        SetupError: neither says it, or both do.
    """
    found = (settings.sections() if sections is None else sections).get("PacemakerDigest")
    payload = settings.payload
    if (found is None) == (payload is None):
        raise SetupError(
            f"{Config.PACEMAKER_AUTH_METHOD}: DIGEST needs one of {Config.PACEMAKER_AUTH_PAYLOAD} and the section "
            f"PacemakerDigest in the file that {Config.JAVA_SECURITY_AUTH_LOGIN_CONFIG} names"
        )
    if found is not None:
        username, password = found.get("username", ""), found.get("password", "")
    else:
        username, _, password = str(payload).partition(":")
    if not username or not password:
        raise SetupError("a login with DIGEST needs a username and a password that are not empty")
    # Storm's clients call themselves so, or by the name of their topology; the secret is the same.
    return Login("pacemaker-client", storm_secret(username, password))


def topology_login(token: str, topology: str) -> Login:
    """Returns by what a topology writes its own heartbeats, and can do nothing else.

    Args:
        token: one of the cluster's; the first one, for a login that is given out.
        topology: its id.

    Example:
        >>> topology_login("0123456789abcdef", "words-1")
        Login('topology:words-1')
    """
    return Login(f"{_TOPOLOGY}{topology}", mac(derived(token, _PURPOSE), "topology", topology))


def topology_of(name: str) -> str | None:
    """Returns the topology that a login's name stands for; None for another login."""
    return name.removeprefix(_TOPOLOGY) if name.startswith(_TOPOLOGY) else None


def kerberos_identity(settings: LoginSettings, sections: Mapping[str, Mapping[str, str]]) -> KerberosIdentity:
    """Returns by what a server takes Kerberos logins.

    Args:
        settings: with principal, keytab and users, as far as the JAAS file does not say them.
        sections: of that file.

    Raises:
        SetupError: something is missing.
    """
    section = sections.get("PacemakerServer", {})
    principal = settings.kerberos_principal or section.get("principal")
    keytab = settings.kerberos_keytab or section.get("keyTab")
    if not principal or not keytab:
        raise SetupError(
            f"{Config.PACEMAKER_AUTH_METHOD}: KERBEROS needs {Config.PACEMAKER_KERBEROS_PRINCIPAL} and "
            f"{Config.PACEMAKER_KERBEROS_KEYTAB}, or a section PacemakerServer with principal and keyTab in the file "
            f"that {Config.JAVA_SECURITY_AUTH_LOGIN_CONFIG} names"
        )
    if section and section.get("useKeyTab", "true").lower() != "true":
        raise SetupError("section PacemakerServer: a server needs useKeyTab=true, as it can't ask for a password")
    if not settings.kerberos_users:
        raise SetupError(
            f"{Config.PACEMAKER_AUTH_METHOD}: KERBEROS needs {Config.PACEMAKER_KERBEROS_USERS}: who may read and write"
        )
    return KerberosIdentity(principal, Path(keytab), settings.kerberos_users)
