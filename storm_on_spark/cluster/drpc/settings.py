"""What the configuration says of DRPC servers, typed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.security.jaas import USER, read_jaas
from storm_on_spark.cluster.security.tokens import Tokens
from storm_on_spark.cluster.thrift.login import DIGEST, SECTION, SIMPLE
from storm_on_spark.drpc.credentials import login_of


@dataclass(frozen=True)
class ServerSettings(Settings):
    """Where a server listens, and what it bears."""

    bind_address: Annotated[str, Config.DRPC_BIND_ADDRESS]
    port: Annotated[int, Config.DRPC_PORT]
    invocations_port: Annotated[int, Config.DRPC_INVOCATIONS_PORT]
    http_port: Annotated[int, Config.DRPC_HTTP_PORT]
    timeout_secs: Annotated[int, Config.DRPC_REQUEST_TIMEOUT_SECS]
    queue_size: Annotated[int, Config.DRPC_QUEUE_SIZE]
    most_bytes: Annotated[int, Config.DRPC_MAX_BUFFER_SIZE]
    transport: Annotated[str | None, Config.DRPC_THRIFT_TRANSPORT_PLUGIN]
    any_transport: Annotated[str, Config.STORM_THRIFT_TRANSPORT_PLUGIN]
    jaas_file: Annotated[str | None, Config.JAVA_SECURITY_AUTH_LOGIN_CONFIG]


def thrift_users(settings: ServerSettings, tokens: Tokens | None) -> Callable[[], dict[str, str]] | None:
    """Returns what returns user -> password of the logins over Thrift: those with a token, and users of a JAAS file.

    None where anybody may call. Tokens may change while the server runs.

    Raises:
        SetupError: the transport is not supported, or has no users.
    """
    plugin = settings.transport or settings.any_transport
    users: dict[str, str] = {}
    if plugin == SIMPLE:
        return None if tokens is None else lambda: _token_users(tokens)
    if plugin != DIGEST:
        raise SetupError(
            f"{Config.DRPC_THRIFT_TRANSPORT_PLUGIN}: {plugin!r:.200} is not supported; a DRPC server has {SIMPLE} and "
            f"{DIGEST}"
        )
    if settings.jaas_file is not None:
        section = read_jaas(settings.jaas_file).get(SECTION, {})
        users |= {name.removeprefix(USER): secret for name, secret in section.items() if name.startswith(USER)}
    if not users and tokens is None:
        raise SetupError(
            f"{DIGEST} needs {Config.JAVA_SECURITY_AUTH_LOGIN_CONFIG}, the path of a JAAS file whose section {SECTION} "
            f'has {USER}NAME="PASSWORD" for each user'
        )
    return lambda: users | _token_users(tokens)


def _token_users(tokens: Tokens | None) -> dict[str, str]:
    return {login.name: login.secret for login in map(login_of, () if tokens is None else tokens.all)}
