"""Who may call a function, and who may answer it: `drpc.authorizer`, by the rules of Storm's `DRPCSimpleACLAuthorizer`.

The list is a separate YAML file, `drpc.authorizer.acl.filename`:

    drpc.authorizer.acl:
      "exclaim":
        client.users: ["ann", "bob"]
        invocation.user: "storm"

Users are those of a JAAS file (over Thrift) and of `nimbus.auth.digest.file` (over HTTP). Whoever has the cluster's
token may do everything: topologies log in with it.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.errors import ForbiddenError
from storm_on_spark.launch.bounded_yaml import BoundedLoader

logger = logging.getLogger(__name__)

_PACKAGE: Final = "org.apache.storm.security.auth.authorizer."
SIMPLE: Final = f"{_PACKAGE}DRPCSimpleACLAuthorizer"
NOOP: Final = f"{_PACKAGE}NoopAuthorizer"
_MOST_BYTES: Final = 1 << 20
_ACL: Final = "drpc.authorizer.acl"
_CLIENTS: Final = "client.users"
_TOPOLOGY: Final = "invocation.user"


@dataclass(frozen=True)
class Entry:
    """Who may do what with one function."""

    clients: frozenset[str] = frozenset()
    """Who may call it."""
    topology: str | None = None
    """Who may fetch its requests and answer them."""


def read_acl(path: str | os.PathLike[str]) -> dict[str, Entry]:
    """Returns function -> entry, of a file.

    Raises:
        SetupError: it can't be read, others may write it, or something in it is of another form.
    """
    file = Path(path)
    try:
        with file.open("rb") as opened:
            if os.fstat(opened.fileno()).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise SetupError(f"{file} can be written by others than its owner; chmod go-w {file}")
            content = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SetupError(f"{Config.DRPC_AUTHORIZER_ACL_FILENAME} {file} can't be read: {error.strerror}") from error
    if len(content) > _MOST_BYTES:
        raise SetupError(f"{file} has more than {_MOST_BYTES:,} bytes")
    try:
        loaded = BoundedLoader(content).get_single_data()
    except (yaml.YAMLError, ValueError) as error:
        raise SetupError(f"{file} is not YAML: {error}") from error
    found = loaded.get(_ACL) if isinstance(loaded, Mapping) else None
    if not isinstance(found, Mapping):
        raise SetupError(f"{file}: {_ACL} has to be a mapping of functions to their users")
    return {str(function): _entry(file, str(function), entry) for function, entry in found.items()}


def _entry(file: Path, function: str, entry: object) -> Entry:
    known: Mapping[object, Any] = entry if isinstance(entry, Mapping) else {}
    clients, topology = known.get(_CLIENTS, []), known.get(_TOPOLOGY)
    if (
        not isinstance(entry, Mapping)
        or not isinstance(clients, list)
        or not all(isinstance(name, str) for name in clients)
        or not isinstance(topology, str | None)
        or known.keys() - {_CLIENTS, _TOPOLOGY}
    ):
        raise SetupError(
            f"{file}: the entry of function {function!r:.200} has to have {_CLIENTS}, a list of names, and "
            f"{_TOPOLOGY}, a name"
        )
    return Entry(frozenset(clients), topology)


class FunctionRights:
    """Decides who may call and who may answer which function. The file is read again when it has changed.

    While it can't be read, nobody may do anything but those with the token.

    Args:
        path: of the file.
        strict: whether a function without an entry is nobody's; otherwise it is everybody's.

    Raises:
        SetupError: the file can't be used.
    """

    def __init__(self, path: str | os.PathLike[str], *, strict: bool) -> None:
        self._path = path
        self._strict = strict
        self._state = _state(path)
        self._entries: dict[str, Entry] | None = read_acl(path)

    def check_client(self, user: str | None, function: str) -> None:
        """Refuses a user who may not call a function; None is somebody without a name.

        Raises:
            ForbiddenError: it is refused.
        """
        entry = self._entry(function)
        if entry is not None and user not in entry.clients:
            raise ForbiddenError(f"{user or 'nobody'} may not call {function!r:.200}: {_CLIENTS} says who may")

    def check_topology(self, user: str | None, function: str) -> None:
        """Refuses a user who may not fetch or answer requests of a function.

        Raises:
            ForbiddenError: it is refused.
        """
        entry = self._entry(function)
        if entry is not None and (user is None or user != entry.topology):
            raise ForbiddenError(f"{user or 'nobody'} may not answer {function!r:.200}: {_TOPOLOGY} says who may")

    def _entry(self, function: str) -> Entry | None:
        """Returns the entry that counts; None if everybody may."""
        state = _state(self._path)
        if state != self._state:
            self._state = state
            try:
                self._entries = read_acl(self._path)
            except SetupError as error:
                logger.error("Nobody may call or answer a function until the list is whole: %s", error)
                self._entries = None
        if self._entries is None:
            raise ForbiddenError(f"{_ACL} can't be read; see the log of the DRPC server")
        return self._entries.get(function, Entry() if self._strict else None)


def _state(path: str | os.PathLike[str]) -> object:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
