"""The definitions of streams and jobs in ZooKeeper, where Spring XD has them.

`/xd/streams/<name>` is `{"definition":"..."}`, and so is `/xd/jobs/<name>`.

Without a secret these records are those of Spring XD, byte for byte; with one they stand in a signed envelope.
"""

from __future__ import annotations

import logging
from typing import Final

from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError

from storm_on_spark.cluster.errors import ExistsError, FormatError, NotFoundError, UnavailableError
from storm_on_spark.xd.tree.nodes import Definition, Kind
from storm_on_spark.xd.tree.session import XdSession

logger = logging.getLogger(__name__)

_FOLDERS: Final[dict[Kind, str]] = {"stream": "streams", "job": "jobs"}
"""Of definitions, below the root."""


class ZooKeeperDefinitions:
    """Streams or jobs, below their folder of a session, which exists.

    Args:
        session: with the root `/xd`.
        kind: which of them.
    """

    def __init__(self, session: XdSession, kind: Kind = "stream") -> None:
        self._session = session
        self._kind = kind

    def create(self, name: str, definition: str) -> None:
        """See `Definitions`."""
        session = self._session
        path = self._path(name)
        try:
            stamp, _ = session.next_stamp(session.paths.of(_FOLDERS[self._kind]))
            value = session.sealed(Definition(definition=definition), path, stamp)
            session.wait(session.client.create_async(path, value, acl=session.acl))
        except NodeExistsError:
            raise ExistsError(f"There is already a {self._kind} named '{name}'") from None
        except KazooException as error:
            raise UnavailableError(f"{self._kind} '{name}' could not be written: {error!r}") from error

    def remove(self, name: str) -> None:
        """See `Definitions`."""
        try:
            self._session.wait(self._session.client.delete_async(self._path(name)))
        except NoNodeError:
            raise missing(self._kind, name) from None
        except KazooException as error:
            raise UnavailableError(f"{self._kind} '{name}' could not be removed: {error!r}") from error

    def get(self, name: str) -> str:
        """See `Definitions`."""
        try:
            value, _ = self._session.wait(self._session.client.get_async(self._path(name)))
        except NoNodeError:
            raise missing(self._kind, name) from None
        except KazooException as error:
            raise UnavailableError(f"{self._kind} '{name}' could not be read: {error!r}") from error
        return self._text(name, value)

    def all(self) -> dict[str, str]:
        """See `Definitions`."""
        session = self._session
        found: dict[str, str] = {}
        try:
            names = sorted(session.wait(session.client.get_children_async(session.paths.of(_FOLDERS[self._kind]))))
            # Asked for together: one round trip for all of them.
            asked = {name: session.client.get_async(self._path(name)) for name in names}
            for name, result in asked.items():
                try:
                    found[name] = self._text(name, session.wait(result)[0])
                except NoNodeError:
                    # Destroyed since its name was read.
                    continue
                except FormatError as error:
                    # The others are there all the same.
                    logger.warning("%s", error)
        except KazooException as error:
            raise UnavailableError(f"the {self._kind}s could not be read: {error!r}") from error
        return found

    def _text(self, name: str, value: bytes) -> str:
        found = self._session.opened(value, Definition, self._path(name))
        if found is None:
            raise FormatError(f"ZooKeeper has no definition of {self._kind} '{name}' that can be believed; see the log")
        return found.definition

    def _path(self, name: str) -> str:
        return self._session.paths.of(_FOLDERS[self._kind], name)


def missing(kind: Kind, name: str) -> NotFoundError:
    """Returns the error for a stream or a job that is not there."""
    return NotFoundError(f"There is no {kind} named '{name}'")
