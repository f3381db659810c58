"""Where the configuration says that DRPC servers are, and what a client logs in with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.cluster.security.addresses import is_loopback
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.user_token import token_path
from storm_on_spark.drpc.connection import Address


@dataclass(frozen=True)
class DRPCSettings(Settings):
    """Where the servers are."""

    servers: Annotated[tuple[str, ...] | None, Config.DRPC_SERVERS]
    port: Annotated[int, Config.DRPC_PORT]
    invocations_port: Annotated[int, Config.DRPC_INVOCATIONS_PORT]
    timeout_secs: Annotated[int, Config.DRPC_REQUEST_TIMEOUT_SECS]
    most_bytes: Annotated[int, Config.DRPC_MAX_BUFFER_SIZE]

    def hosts(self) -> tuple[str, ...]:
        """Returns the servers' hosts.

        Raises:
            ConfigError: the configuration names none.
        """
        if not self.servers:
            raise ConfigError(f"{Config.DRPC_SERVERS} names no DRPC server", key=Config.DRPC_SERVERS)
        return self.servers


def address_of(conf: Mapping[str, Any], host: str, port: int) -> Address:
    """Returns an address with what the configuration has to log in there.

    As for other daemons, the user's own token serves on loopback where the configuration names no token.
    """
    security = SecuritySettings.of(conf)
    token_file = security.token_file
    if token_file is None and is_loopback(host) and os.path.lexists(token_path()):
        token_file = str(token_path())
    return Address(host, port, token_file, security.ca_file)
