"""The token of a user: the secret of daemons on loopback whose configuration names none.

Loopback is not a user: everybody on a host reaches what listens there. So such daemons make a token in a file that only
their user can read, and that user's clients find it there. It counts on loopback only: no request to another host is
signed with it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.cluster.security.addresses import is_loopback
from storm_on_spark.cluster.security.proofs import TokenAuth
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tokens import Tokens
from storm_on_spark.spark.session.folders.dirs import own_dir, state_dir, writable_dir

logger = logging.getLogger(__name__)

_NAME: Final = "token"
_BYTES: Final = 32


@dataclass(frozen=True)
class _Addresses(Settings):
    """What daemons listen on."""

    nimbus: Annotated[str, Config.NIMBUS_BIND_ADDRESS]
    supervisor: Annotated[str, Config.SUPERVISOR_LOGS_BIND_ADDRESS]
    pacemaker: Annotated[str, Config.PACEMAKER_BIND_ADDRESS]
    drpc: Annotated[str, Config.DRPC_BIND_ADDRESS]


TOKEN_PATH: Final = "STORM_ON_SPARK_TOKEN_PATH"  # noqa: S105 # a variable's name
"""The environment variable by which a supervisor tells drivers where the user's token is: their own logs, and so their
state, are elsewhere."""


def token_path() -> Path:
    """Returns where the user's token is, or would be."""
    told = os.environ.get(TOKEN_PATH)
    return Path(told) if told else state_dir() / _NAME


def with_own_token(
    conf: Mapping[str, Any], daemon: Literal["nimbus", "supervisor", "pacemaker", "drpc"], *, is_open: bool = False
) -> dict[str, Any]:
    """Returns a daemon's configuration, with the user's token where it names none.

    A daemon that other hosts can reach needs a token that they have too: its configuration stays as it is, and the
    daemon refuses to start.

    Args:
        conf: the configuration.
        daemon: by whose address it listens; admins and containers of streams have that of a Nimbus.
        is_open: no token is wanted.

    Raises:
        ConfigError: the configuration names a token, and none is wanted.
        SetupError: the file can't be made, or others than the user can access it.
    """
    found = dict(conf)
    if SecuritySettings.of(found).token_file is not None:
        if is_open:
            raise ConfigError(
                f"--open asks for no token, but {Config.NIMBUS_AUTH_TOKEN_FILE} names one: leave out one of the two",
                key=Config.NIMBUS_AUTH_TOKEN_FILE,
            )
        return found
    if is_open:
        logger.warning(
            "--open: there is no token. Every user of this host can run code as user %d, and read its data",
            os.geteuid(),
        )
    elif is_loopback(getattr(_Addresses.of(found), daemon)):
        found[Config.NIMBUS_AUTH_TOKEN_FILE] = str(kept_secret(token_path()))
    return found


def auth_of_client(settings: SecuritySettings, addresses: Iterable[str]) -> TokenAuth | None:
    """Returns what proves a client's requests: the configuration's token, or else the user's own; None without any.

    Args:
        settings: of the client.
        addresses: `host:port` of the servers that it begins with.

    Raises:
        SetupError: a file can't be used.
    """
    tokens = Tokens.of(settings)
    if tokens is not None:
        return TokenAuth(tokens)
    path = token_path()
    local = any(is_loopback(urlsplit(f"//{address}").hostname or "") for address in addresses)
    if not local or not os.path.lexists(path):
        return None
    _check(path)
    return TokenAuth(Tokens.from_file(path), loopback_only=True)


def kept_secret(path: Path) -> Path:
    """Makes a file with a random secret, unless there is one; returns its path.

    Raises:
        SetupError: it can't be made, or others than the user can access it.
    """
    if not writable_dir(path.parent) or not own_dir(path.parent):
        raise SetupError(
            f"{path.parent} has to be a folder of yours that you can write to, and no link: "
            f"there a token would be kept. Set XDG_STATE_HOME, or {Config.NIMBUS_AUTH_TOKEN_FILE}"
        )
    if not os.path.lexists(path):
        make_secret_file(path, secrets.token_hex(_BYTES))
    _check(path)
    return path


def make_secret_file(path: Path, content: str) -> None:
    """Makes a file that only its owner may read, with all of its content at once; one that is there stays.

    Raises:
        SetupError: it can't be made.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(content + "\n")
        try:
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()
    except OSError as error:
        raise SetupError(f"{path} can't be made: {error.strerror}") from error


def _check(path: Path) -> None:
    """Refuses a file that another user may have written or may read.

    Raises:
        SetupError: others may have written it or may read it.
    """
    try:
        status = path.lstat()
    except OSError as error:
        raise SetupError(f"token file {path} can't be read: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise SetupError(f"token file {path} is not a regular file; remove it, and a daemon makes a new one")
    if status.st_uid != os.geteuid():
        raise SetupError(
            f"token file {path} belongs to user {status.st_uid}, and not to you (user {os.geteuid()}); remove it, and "
            "a daemon makes a new one"
        )
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SetupError(
            f"token file {path} has mode {stat.S_IMODE(status.st_mode):04o}, so others may have read it; remove it, "
            "and a daemon makes a new one"
        )
