"""The definitions of streams and jobs in ZooKeeper, at the same paths as in Spring XD.

`/xd/streams/<name>` is `{"definition":"..."}`, and so is `/xd/jobs/<name>`.

Without a secret these records are byte for byte those of Spring XD; with one, each is in a signed envelope.
"""

from __future__ import annotations

from storm_on_spark.cluster.errors import ExistsError, FormatError, NotFoundError
from storm_on_spark.cluster.zookeeper.tree import Tree
from storm_on_spark.xd.tree.nodes import DEFINITIONS, Definition, Kind


class ZooKeeperDefinitions:
    """Streams or jobs, below their folder, which exists.

    Args:
        tree: in ZooKeeper.
        kind: which of them.
    """

    def __init__(self, tree: Tree, kind: Kind = "stream") -> None:
        self._tree = tree
        self._kind = kind
        self._folder = DEFINITIONS[kind]

    def create(self, name: str, definition: str) -> None:
        """See `Definitions`."""
        try:
            self._tree.add(Definition(definition=definition), self._folder, name)
        except ExistsError:
            raise ExistsError(f"There is already a {self._kind} named '{name}'") from None

    def remove(self, name: str) -> None:
        """See `Definitions`."""
        if not self._tree.delete(f"{self._folder}/{name}"):
            raise missing(self._kind, name)

    def get(self, name: str) -> str:
        """See `Definitions`."""
        path = f"{self._folder}/{name}"
        found = self._tree.read(Definition, path)
        if found is not None:
            return found.definition
        if self._tree.stat(path) is None:
            raise missing(self._kind, name)
        raise FormatError(
            f"ZooKeeper has no definition of {self._kind} '{name}' that is valid; the admin's log says why"
        )

    def all(self) -> dict[str, str]:
        """See `Definitions`."""
        return {name: found.definition for name, found in self._tree.read_all(Definition, self._folder).items()}


def missing(kind: Kind, name: str) -> NotFoundError:
    """Returns the error for a stream or a job that does not exist."""
    return NotFoundError(f"There is no {kind} named '{name}'")
