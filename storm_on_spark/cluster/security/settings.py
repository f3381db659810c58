"""What the configuration says of the cluster's secret and of TLS, typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings


@dataclass(frozen=True)
class SecuritySettings(Settings):
    """Paths of files with secrets, keys and certificates, and who may change something; None where there is none."""

    token_file: Annotated[str | None, Config.NIMBUS_AUTH_TOKEN_FILE]
    digest_file: Annotated[str | None, Config.NIMBUS_AUTH_DIGEST_FILE]
    admins: Annotated[tuple[str, ...] | None, Config.NIMBUS_ADMINS]
    certificate_file: Annotated[str | None, Config.STORM_TLS_CERTIFICATE_FILE]
    key_file: Annotated[str | None, Config.STORM_TLS_KEY_FILE]
    ca_file: Annotated[str | None, Config.STORM_TLS_CA_FILE]
