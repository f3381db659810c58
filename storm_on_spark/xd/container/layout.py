"""Where the instances of a stream stand on the bus, and what they are made of.

<bus>/<stream>-<id>/<module>/<n>/       the journal of an instance
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storm_on_spark.api.errors import StormError
from storm_on_spark.xd.bus.inputs import instances
from storm_on_spark.xd.bus.journal import Journal, Message, Positions
from storm_on_spark.xd.container.chain import Chain
from storm_on_spark.xd.container.instance import Place
from storm_on_spark.xd.dsl import Stream, Tap, parse_stream
from storm_on_spark.xd.manifest import ModuleManifest, parse_manifest
from storm_on_spark.xd.modules.history import tracked
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.parts import Part, parts_of
from storm_on_spark.xd.tree.nodes import ModuleName, ModuleNode


class LayoutError(StormError, ValueError):
    """An instance that can't run."""


@dataclass(frozen=True)
class StreamThere:
    """A stream that was created.

    Args:
        name: its name.
        number: unique for all streams of that name that ever were, in any ZooKeeper.
        definition: its text.
    """

    name: str
    number: str
    definition: str

    def parsed(self) -> Stream:
        """Returns what its text says."""
        return parse_stream(self.definition, self.name)

    def folder(self, bus: Path) -> Path:
        """Returns the folder of what it has on the bus."""
        return bus / f"{self.name}-{self.number}"


Find = Callable[[str], StreamThere | None]


class Blueprint:
    """How to make one instance of a module.

    Args:
        bus: the folder that all containers share.
        stream: the stream.
        name: of the instance.
        node: what the admin says of it.
        properties: the manifest of the deployment.
        registry: the modules.
        find: returns another stream.
        container: the id of the container, for the history of messages.
        sync: whether its journal must survive the loss of the machine.

    Raises:
        DslError, ManifestError, LayoutError: it can't be made.
    """

    def __init__(
        self,
        bus: Path,
        stream: StreamThere,
        name: ModuleName,
        node: ModuleNode,
        properties: dict[str, str],
        registry: LocalRegistry,
        find: Find,
        container: str,
        sync: bool = False,
    ) -> None:
        self._container, self._sync = container, sync
        self._bus, self._there, self._name, self._node = bus, stream, name, node
        self._stream = stream.parsed()
        self._find = find
        self._labels = [module.label for module in self._stream.modules]
        if name.label not in self._labels:
            raise LayoutError(f"Expected a module of {', '.join(self._labels)}, got {name.label}")
        self._registry = registry
        self._parts: list[Part] = [
            part for part in parts_of(self._stream, stream.definition, registry) if part.origin.label == name.label
        ]
        self._manifest: ModuleManifest = parse_manifest(properties, self._labels)[name.label]
        self._counts = {label: each.count for label, each in parse_manifest(properties, self._labels).items()}
        # Wrong options are found before it is said that the module is deployed.
        self.chain()
        self.place = self._place()

    def chain(self) -> Chain:
        """Returns new components."""
        made = [(part.label, part.component(self._there.name, self._there.definition)) for part in self._parts]
        return Chain(made, f"{self._there.folder(Path()).name}.{self._name.label}.{self._name.sequence}")

    def options(self) -> dict[str, str]:
        """Returns the options with defaults; those of a composed module's parts with their labels before them."""
        found: dict[str, str] = {}
        for part in self._parts:
            texts = part.declaration.texts(part.options, self._there.name)
            found.update({f"{part.prefix}{name}": text for name, text in texts.items()})
        return found

    def _place(self) -> Place:
        at = self._labels.index(self._name.label)
        own = self._there.folder(self._bus)
        manifest = self._manifest
        readers: tuple[str, ...] = ()
        if at + 1 < len(self._labels):
            after = self._labels[at + 1]
            # Of one in every container it is unknown how many there are, but for the first.
            readers = tuple(self._reader(after, number + 1) for number in range(self._counts[after] or 1))
        source: Path | None = own / self._labels[at - 1]
        first: Callable[[], Positions] = dict
        if at == 0:
            source = self._tapped()
            if source is not None:
                tapped = source
                first = lambda: _ends(tapped)  # noqa: E731
        return Place(
            own / self._name.label,
            self._name.sequence,
            self._node.instances,
            self._node.generation,
            self._reader(self._name.label, self._name.sequence),
            source,
            first,
            readers,
            None if manifest.partition_key is None else lambda message: _partition(manifest, message),
            self._sync,
            self._track if manifest.track_history else None,
        )

    def _track(self, headers: dict[str, Any]) -> dict[str, Any]:
        return tracked(headers, str(self._name), self._container, time.time())

    def _reader(self, label: str, sequence: int) -> str:
        return f"{self._there.folder(Path()).name}.{label}.{sequence}"

    def _tapped(self) -> Path | None:
        tap = self._stream.source
        if tap is None:
            return None
        if not isinstance(tap, Tap) or tap.kind != "stream":
            raise LayoutError("a container has no channels queue: and topic: yet")
        other = self._find(tap.name)
        if other is None:
            raise LayoutError(f"there is no stream {tap.name}, which it taps")
        labels = [module.label for module in other.parsed().modules]
        label = tap.label or labels[0]
        if label not in labels:
            raise LayoutError(f"stream {tap.name} has no module {label}; it has {', '.join(labels)}")
        return other.folder(self._bus) / label


def _partition(manifest: ModuleManifest, message: Message) -> int:
    found = manifest.partition(message.payload, message.headers)
    assert found is not None
    return found


def _ends(folder: Path) -> Positions:
    """Returns the ends of all journals of a module: who taps it sees what comes from now on."""
    return {name: (Journal(folder / name).last() + 1, 0) for name in instances(folder)}
