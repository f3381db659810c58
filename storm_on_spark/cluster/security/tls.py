"""TLS of a cluster: what serves, and by what a client knows that it speaks to the right one. TLS 1.2 at least.

There is no way to switch the checks off: a client with a CA file speaks HTTPS, to hosts whose names stand in
certificates that this CA has signed, and to no others.
"""

from __future__ import annotations

import ssl
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.security.settings import SecuritySettings

Scheme = Literal["http", "https"]

_CERTIFICATE, _KEY, _CA = Config.STORM_TLS_CERTIFICATE_FILE, Config.STORM_TLS_KEY_FILE, Config.STORM_TLS_CA_FILE


@dataclass(frozen=True)
class Tls:
    """The TLS settings of a process; without `client` it speaks HTTP."""

    client: ssl.SSLContext | None = None
    server: ssl.SSLContext | None = None

    @property
    def scheme(self) -> Scheme:
        """The scheme of the cluster's URLs."""
        return "http" if self.client is None else "https"

    @property
    def verify(self) -> ssl.SSLContext | bool:
        """The argument `verify` of `httpx`."""
        return True if self.client is None else self.client

    @classmethod
    def of_client(cls, settings: SecuritySettings) -> Tls:
        """Returns what a client needs: the CA file is all.

        Raises:
            SetupError: it can't be used.
        """
        return cls() if settings.ca_file is None else cls(_client(Path(settings.ca_file)))

    @classmethod
    def of_daemon(cls, settings: SecuritySettings) -> Tls:
        """Returns what a daemon needs, which is a client of others too: all three files, or none.

        Raises:
            SetupError: one is missing, or can't be used.
        """
        files = {_CERTIFICATE: settings.certificate_file, _KEY: settings.key_file, _CA: settings.ca_file}
        if not any(files.values()):
            return cls()
        missing = [key for key, file in files.items() if file is None]
        if missing:
            raise SetupError(f"TLS needs {' and '.join(missing)} too: daemons serve, and are clients of each other")
        return cls(_client(Path(str(files[_CA]))), _server(Path(str(files[_CERTIFICATE])), Path(str(files[_KEY]))))


def _client(ca: Path) -> ssl.SSLContext:
    _readable(_CA, ca)
    # Without the system's CAs: any of those could vouch for a stranger.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cafile=ca)
    except (ssl.SSLError, OSError) as error:
        raise SetupError(f"{_CA}: {ca} holds no certificates as PEM: {_reason(error)}") from error
    if not context.cert_store_stats()["x509_ca"]:
        raise SetupError(f"{_CA}: {ca} holds no certificate of a CA")
    return context


def _server(certificate: Path, key: Path) -> ssl.SSLContext:
    _readable(_CERTIFICATE, certificate)
    _readable(_KEY, key)
    if key.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SetupError(f"{_KEY}: {key} can be read by others than its owner; chmod 600 {key}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2

    def password() -> str:
        # Otherwise OpenSSL asks at the terminal, and a daemon waits for ever.
        raise SetupError(f"{_KEY}: {key} has a password; a daemon can't enter one")

    try:
        context.load_cert_chain(certificate, key, password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise SetupError(f"{_KEY}: {key} is not the key of the certificate in {certificate}") from error
        raise SetupError(
            f"{_CERTIFICATE}, {_KEY}: {certificate} and {key} hold no certificate and key as PEM: {_reason(error)}"
        ) from error
    return context


def _readable(name: str, file: Path) -> None:
    try:
        with file.open("rb"):
            pass
    except OSError as error:
        raise SetupError(f"{name}: {file} can't be read: {error.strerror}") from error


def _reason(error: OSError) -> str:
    return str(getattr(error, "reason", None) or error.strerror or error)
