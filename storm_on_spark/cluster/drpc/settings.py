"""What the configuration says of DRPC servers, typed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.drpc.rights import NOOP, SIMPLE, FunctionRights
from storm_on_spark.cluster.security.jaas import USER, read_jaas
from storm_on_spark.cluster.security.tokens import Tokens
from storm_on_spark.cluster.thrift.login import DIGEST, SECTION
from storm_on_spark.cluster.thrift.login import SIMPLE as NO_LOGIN
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
    authorizer: Annotated[str | None, Config.DRPC_AUTHORIZER]
    acl_file: Annotated[str | None, Config.DRPC_AUTHORIZER_ACL_FILENAME]
    acl_strict: Annotated[bool, Config.DRPC_AUTHORIZER_ACL_STRICT]


def function_rights(settings: ServerSettings, *, logins: bool) -> FunctionRights | None:
    """Returns what decides who may call which function; None where nothing does.

    Args:
        settings: the server's.
        logins: whether clients log in, over Thrift and over HTTP.

    Raises:
        SetupError: the authorizer is unknown, or nobody logs in, or its file can't be used.
    """
    if settings.authorizer in (None, NOOP):
        return None
    if settings.authorizer != SIMPLE:
        raise SetupError(
            f"{Config.DRPC_AUTHORIZER} {settings.authorizer!r:.200} is not supported; a DRPC server has {SIMPLE} and "
            f"{NOOP}"
        )
    if not logins:
        raise SetupError(
            f"{Config.DRPC_AUTHORIZER} needs {Config.NIMBUS_AUTH_TOKEN_FILE}: who doesn't log in has no name"
        )
    if settings.acl_file is None:
        raise SetupError(f"{Config.DRPC_AUTHORIZER} needs {Config.DRPC_AUTHORIZER_ACL_FILENAME}, the path of the list")
    return FunctionRights(settings.acl_file, strict=settings.acl_strict)


def token_names(tokens: Tokens | None) -> frozenset[str]:
    """Returns the names under which those with a token log in over Thrift."""
    return frozenset(_token_users(tokens))


def thrift_users(settings: ServerSettings, tokens: Tokens | None) -> Callable[[], dict[str, str]] | None:
    """Returns what returns user -> password of the logins over Thrift: those with a token, and users of a JAAS file.

    None where anybody may call. Tokens may change while the server runs.

    Raises:
        SetupError: the transport is not supported, or has no users.
    """
    plugin = settings.transport or settings.any_transport
    users: dict[str, str] = {}
    if plugin == NO_LOGIN:
        return None if tokens is None else lambda: _token_users(tokens)
    if plugin != DIGEST:
        raise SetupError(
            f"{Config.DRPC_THRIFT_TRANSPORT_PLUGIN}: {plugin!r:.200} is not supported; a DRPC server has "
            f"{NO_LOGIN} and {DIGEST}"
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
