"""What the configuration says of the Thrift service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class ThriftSettings(Settings):
    """Limits of the service, and its logins."""

    most_bytes: Annotated[int, Config.NIMBUS_THRIFT_MAX_BUFFER_SIZE]
    """The longest frame, in bytes."""
    threads: Annotated[int, Config.NIMBUS_THRIFT_THREADS]
    transport: Annotated[str | None, Config.NIMBUS_THRIFT_TRANSPORT_PLUGIN]
    """Name of Storm's class; None for that of `any_transport`."""
    any_transport: Annotated[str, Config.STORM_THRIFT_TRANSPORT_PLUGIN]
    jaas_file: Annotated[str | None, Config.JAVA_SECURITY_AUTH_LOGIN_CONFIG]
