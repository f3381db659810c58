"""The places of a stream's instances on the bus, and their components."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from storm_on_spark.api.errors import StormError
from storm_on_spark.xd.bus.journal import Message
from storm_on_spark.xd.bus.port import ChannelFeed, Feed, ModuleFeed, Place, TapFeed, reader_name
from storm_on_spark.xd.container.chain import Chain
from storm_on_spark.xd.dsl import Channel, Stream, Tap, parse_stream
from storm_on_spark.xd.manifest import ModuleManifest, parse_manifest
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.modules.messages.history import tracked
from storm_on_spark.xd.parts import Part, parts_of
from storm_on_spark.xd.tree.nodes import ModuleName, ModuleNode


class LayoutError(StormError, ValueError):
    """An instance that can't run."""


@dataclass(frozen=True)
class StreamThere:
    """A stream that was created.

    Args:
        name: its name.
        number: unique among all streams of that name, past ones and other ZooKeepers included.
        definition: its text.
    """

    name: str
    number: str
    definition: str

    def parsed(self) -> Stream:
        """Returns the parsed definition."""
        return parse_stream(self.definition, self.name)

    @property
    def id(self) -> str:
        """Its name on the bus."""
        return f"{self.name}-{self.number}"


Find = Callable[[str], StreamThere | None]


class Blueprint:
    """How to make one instance of a module.

    Args:
        stream: the stream.
        name: of the instance.
        node: its node, as the admin wrote it.
        properties: the manifest of the deployment.
        registry: the modules.
        find: returns a stream by name.
        container: the id of the container, for the history of messages.

    Raises:
        DslError, ManifestError, LayoutError: the definition is invalid.
    """

    def __init__(
        self,
        stream: StreamThere,
        name: ModuleName,
        node: ModuleNode,
        properties: dict[str, str],
        registry: LocalRegistry,
        find: Find,
        container: str = "",
    ) -> None:
        self._container = container
        self._there, self._name, self._node = stream, name, node
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
        # Validates options before the module is reported as deployed.
        self.chain()
        self.place = self._place()

    def chain(self) -> Chain:
        """Returns new components."""
        made = [(part.label, part.component(self._there.name, self._there.definition)) for part in self._parts]
        return Chain(made, reader_name(self._there.id, self._name.label, self._name.sequence))

    def options(self) -> dict[str, str]:
        """Returns the options with defaults; those of a composed module's parts with their labels before them."""
        found: dict[str, str] = {}
        for part in self._parts:
            texts = part.declaration.texts(part.options, self._there.name)
            found.update({f"{part.prefix}{name}": text for name, text in texts.items()})
        return found

    def _place(self) -> Place:
        at = self._labels.index(self._name.label)
        manifest = self._manifest
        last = at + 1 == len(self._labels)
        readers: tuple[str, ...] = ()
        if not last:
            after = self._labels[at + 1]
            # If the module runs in every container, only its first instance is known.
            readers = tuple(
                reader_name(self._there.id, after, number + 1) for number in range(self._counts[after] or 1)
            )
        return Place(
            self._there.id,
            self._name.label,
            self._name.sequence,
            self._node.instances,
            self._node.generation,
            ModuleFeed(self._there.id, self._labels[at - 1]) if at else self._first_feed(),
            self._stream.sink if last else None,
            readers,
            None if manifest.partition_key is None else lambda message: _partition(manifest, message),
            self._track if manifest.track_history else None,
        )

    def _track(self, headers: dict[str, Any]) -> dict[str, Any]:
        return tracked(headers, str(self._name), self._container, time.time())

    def _first_feed(self) -> Feed | None:
        """Returns the input of the first module; None if it is a source."""
        source = self._stream.source
        if isinstance(source, Channel):
            return ChannelFeed(source)
        if source is None:
            return None
        if source.kind == "queue" or source.kind == "topic":
            return ChannelFeed(Channel(source.kind, source.name), tapped=True)
        return self._tapped(source)

    def _tapped(self, tap: Tap) -> TapFeed:
        if tap.kind == "job":
            raise LayoutError("a container has no taps of jobs")
        other = self._find(tap.name)
        if other is None:
            if tap.label is None:
                raise LayoutError(f"there is no stream {tap.name}, which it taps")
            # The stream may be created again later.
            return TapFeed(tap.name, tap.label)
        parsed = other.parsed()
        labels = [module.label for module in parsed.modules]
        label = tap.label or labels[0]
        if label not in labels:
            raise LayoutError(f"stream {tap.name} has no module {label}; it has {', '.join(labels)}")
        return TapFeed(tap.name, label, parsed.sink if label == labels[-1] else None)


def _partition(manifest: ModuleManifest, message: Message) -> int:
    found = manifest.partition(message.payload, message.headers)
    assert found is not None
    return found
