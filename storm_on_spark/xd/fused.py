"""A stream as one topology: each module is a component, and messages go from one to the next inside the topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from storm_on_spark.api.building.builder import TopologyBuilder
from storm_on_spark.api.component import BaseRichSpout
from storm_on_spark.api.config import Config
from storm_on_spark.api.topology import Topology
from storm_on_spark.launch.loader import LoadError, Target
from storm_on_spark.xd.dsl import MAXIMUM_LENGTH, Code, DslError, Stream, parse_stream
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.modules.messages.dead_letters import DeadLetters, GivesUp, Letter, RefusesRows
from storm_on_spark.xd.modules.messages.history import History
from storm_on_spark.xd.modules.messages.letter_files import LetterFiles
from storm_on_spark.xd.modules.messages.message import DEAD_LETTERS
from storm_on_spark.xd.parts import Part, parts_of, types_of

DEFAULT_NAME: Final = "stream"
"""The name of an unnamed stream."""
_REFUSED_ROWS: Final = "refused-rows"
"""The folder, beside dead letters, of rows that sinks' targets refuse."""
_LETTER: Final = "dead-letter"
_DEAD_LETTERS: Final = "dead-letters"
"""Ids of the components that handle messages given up by the source."""


@dataclass(frozen=True)
class StreamTarget(Target):
    """A stream, as the commands use it."""

    where: str
    stream: Stream
    definition: str
    path: Path | None = None
    dead_letters: DeadLetters | None = None

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.stream.name or DEFAULT_NAME

    @property
    def file(self) -> Path | None:
        """The file with the definition, if it came from one."""
        return self.path

    @property
    def conf(self) -> dict[str, Any]:
        """With dead letters a message that can't be processed does not end the run."""
        return {} if self.dead_letters is None else {Config.TOPOLOGY_FAIL_FAST: False}

    def topology(self, conf: Mapping[str, Any]) -> Topology:
        """Returns the topology.

        Raises:
            LoadError: a module or option of the stream is invalid.
        """
        try:
            return build(self.stream, self.definition, self.dead_letters)
        except DslError as error:
            raise LoadError(str(error)) from error


def load_stream(definition: str, name: str | None = None, dead_letters: DeadLetters | None = None) -> StreamTarget:
    """Parses a definition.

    Args:
        definition: the text.
        name: the stream's name; None if the text may give one.
        dead_letters: where messages go that fail again and again; with None they are retried for ever.

    Raises:
        LoadError: the text is not a stream.
    """
    try:
        return StreamTarget(definition, parse_stream(definition, name), definition, dead_letters=dead_letters)
    except DslError as error:
        raise LoadError(str(error)) from error


def load_file(path: Path, where: str) -> StreamTarget:
    """Reads a file with one definition; the stream's name is that of the file, unless the definition has one.

    Args:
        path: the file.
        where: its name in messages.

    Raises:
        LoadError: it can't be read, or is not a stream.
    """
    try:
        with path.open("rb") as file:
            # A character has at most four bytes.
            text = file.read(4 * MAXIMUM_LENGTH + 1).decode()
        stream = parse_stream(text)
    except OSError as error:
        raise LoadError(f"{where} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LoadError(f"{where} is not UTF-8: {error.reason}") from error
    except DslError as error:
        raise LoadError(f"{where}: {error}") from error
    return StreamTarget(where, replace(stream, name=stream.name or path.stem), text, path)


def build(
    stream: Stream,
    definition: str,
    dead_letters: DeadLetters | None = None,
    registry: LocalRegistry | None = None,
    tasks: Mapping[str, int] = MappingProxyType({}),
    tracked_in: Mapping[str, str] = MappingProxyType({}),
) -> Topology:
    """Returns a stream as a topology: a source, processors and a sink; their labels are the component ids.

    Args:
        stream: the parsed stream.
        definition: the text that it was parsed from, for errors.
        dead_letters: where messages go that fail again and again; with None they are retried for ever.
        registry: the modules; None for those of this machine.
        tasks: label of a module -> its number of tasks; 1 if it is not named.
        tracked_in: label of a module whose messages keep their history -> the container.

    Raises:
        DslError: a module or an option is unknown, or a value is invalid.

    Example:
        >>> text = "time | log"
        >>> sorted(build(parse_stream(text), text).bolts)
        ['log']
    """
    if stream.source is not None or stream.sink is not None:
        at = 0 if stream.source is not None else definition.rfind(">")
        message = "Expected a source and a sink; queue:, topic: and taps need a message bus, which one topology has not"
        raise DslError(Code.NOT_FUSED, definition, at, message)
    if len(stream.modules) == 1:
        raise DslError(Code.INCOMPLETE, definition, stream.modules[0].position, "Expected a source and a sink")
    builder = TopologyBuilder()
    types = types_of(stream)
    before: str | None = None
    parts = parts_of(stream, definition, registry or LocalRegistry())
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        count = tasks.get(part.origin.label, 1)
        if part.label.startswith("__"):
            message = "Expected a label that does not begin with '__', as Storm's own components do"
            raise DslError(Code.NAME, definition, part.origin.position, message)
        component = part.component(stream.name or DEFAULT_NAME, definition)
        if before is None:
            assert isinstance(component, BaseRichSpout)
            if dead_letters is not None:
                _set_dead_letters(builder, part, component, stream, definition, dead_letters)
            builder.set_spout(part.label, component, count)
        else:
            assert not isinstance(component, BaseRichSpout)
            if dead_letters is not None and isinstance(component, RefusesRows):
                component.refuse_to(str(Path(dead_letters.folder) / _REFUSED_ROWS))
            builder.set_bolt(part.label, component, count).local_or_shuffle_grouping(before)
        before = part.label
        container = tracked_in.get(part.origin.label)
        if container is not None and following is not None and following.origin is not part.origin:
            history = History(
                f"{stream.name or DEFAULT_NAME}.{types[part.origin.label]}.{part.origin.label}", container
            )
            # No label has two consecutive dots.
            before = f"{part.label}..history"
            builder.set_bolt(before, history, count).local_or_shuffle_grouping(part.label)
    return builder.create_topology()


def _set_dead_letters(
    builder: TopologyBuilder,
    first: Part,
    source: BaseRichSpout,
    stream: Stream,
    definition: str,
    dead_letters: DeadLetters,
) -> None:
    for module in stream.modules:
        if module.label in (_LETTER, _DEAD_LETTERS):
            message = f"Expected another label than {module.label}, which belongs to dead letters"
            raise DslError(Code.NAME, definition, module.position, message)
    if not isinstance(source, GivesUp):
        message = f"Expected a source that can give messages up, for dead letters; {first.declaration.name} can't"
        raise DslError(Code.NOT_FUSED, definition, first.origin.position, message)
    source.give_up_after(dead_letters.attempts)
    builder.set_bolt(_LETTER, Letter()).local_or_shuffle_grouping(first.label, DEAD_LETTERS)
    builder.set_bolt(_DEAD_LETTERS, LetterFiles(dead_letters.folder)).local_or_shuffle_grouping(_LETTER)
