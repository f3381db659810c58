"""YAML as plain values that know their place: no tags of other languages, bounded in size, depth and aliases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from storm_on_spark.flux.errors import FluxError, Place
from storm_on_spark.flux.reading import BREAK, PLACEHOLDER, Substitution, Text
from storm_on_spark.launch.bounded_yaml import MAX_DEPTH, MAX_NODES, BoundedLoader

_PREFIX = "tag:yaml.org,2002:"
_SCALARS = frozenset(("bool", "float", "int", "null"))
_TEXTS = frozenset(("str", "timestamp", "value"))


@dataclass(frozen=True)
class Node:
    """A value of a Flux file: None, a bool, int, float or string; a list of nodes; or a mapping from names to nodes."""

    value: Any
    place: Place
    keys: dict[str, Place] | None = None
    """The places of a mapping's keys."""

    def plain(self) -> Any:
        """Returns the value without places."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value

    def error(self, message: str) -> FluxError:
        """Returns the error that this value is wrong."""
        return FluxError(message, self.place)


def parse(text: Text, values: Substitution) -> Node:
    """Parses a Flux file.

    Raises:
        FluxError: it is not YAML, has several documents, tags or duplicate keys, or is too large or too deep.
    """
    composer = None
    try:
        composer = BoundedLoader(text.text)
        root = composer.get_single_node()
    except yaml.YAMLError as error:
        # PyYAML's own text shows the line after substitution.
        raise _syntax_error(error, text, values) from None
    finally:
        if composer is not None:
            composer.dispose()
    if root is None:
        raise FluxError("there is nothing in it: a topology has spouts, bolts and streams", Place(text.source, 0, 0))
    return _Walk(text, values).node(root, 0)


class _Walk:
    def __init__(self, text: Text, values: Substitution) -> None:
        self._text = text
        self._values = values
        self._scalars = SafeConstructor()
        self._count = 0

    def node(self, node: yaml.Node, depth: int) -> Node:
        place = self._place(node)
        self._count += 1
        if self._count > MAX_NODES:
            raise FluxError(f"it has more than {MAX_NODES:,} values, with aliases counted as often as used", place)
        # An alias inside its own anchor would recurse for ever without this limit.
        if depth > MAX_DEPTH:
            raise FluxError(f"it is nested more than {MAX_DEPTH} levels deep", place)
        if isinstance(node, yaml.MappingNode):
            self._check_tag(node, "map", place)
            return self._mapping(node, depth, place)
        if isinstance(node, yaml.SequenceNode):
            self._check_tag(node, "seq", place)
            return Node([self.node(item, depth + 1) for item in node.value], place)
        return Node(self._scalar(node, place), place)

    def _mapping(self, node: yaml.MappingNode, depth: int, place: Place) -> Node:
        found: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        merged: list[Node] = []
        for key, value in node.value:
            where = self._place(key)
            if key.tag == f"{_PREFIX}merge":
                merged += self._merged(value, depth)
                continue
            name = self._scalar(key, where) if isinstance(key, yaml.ScalarNode) else None
            if not isinstance(name, str):
                raise FluxError(f"a key must be a string, not {_shown(name)}", where)
            if name in found:
                raise FluxError(f'"{name}" is there twice', where)
            found[name], keys[name] = self.node(value, depth + 1), where
        for other in merged:
            for name, item in other.value.items():
                if name not in found:
                    found[name], keys[name] = item, (other.keys or {})[name]
        return Node(found, place, keys)

    def _merged(self, node: yaml.Node, depth: int) -> Iterator[Node]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for part in parts:
            found = self.node(part, depth + 1)
            if not isinstance(found.value, dict):
                raise found.error("<< takes a mapping, or a list of them")
            yield found

    def _scalar(self, node: yaml.Node, place: Place) -> Any:
        kind = node.tag.removeprefix(_PREFIX)
        missing = PLACEHOLDER.search(str(node.value))
        if missing is not None:
            raise FluxError(self._values.missing(missing[1].strip()), place)
        if kind in _TEXTS:
            return str(node.value)
        if kind not in _SCALARS:
            raise FluxError(f"the tag {_tag(node.tag)} is not allowed: a Flux file has plain values only", place)
        try:
            return self._scalars.construct_object(node)
        except (ValueError, OverflowError, KeyError, yaml.YAMLError):
            raise FluxError(f"{_shown(node.value)} is no {kind}", place) from None

    def _check_tag(self, node: yaml.Node, kind: str, place: Place) -> None:
        if node.tag != f"{_PREFIX}{kind}":
            raise FluxError(f"the tag {_tag(node.tag)} is not allowed: a Flux file has plain values only", place)

    def _place(self, node: yaml.Node) -> Place:
        return self._text.place(node.start_mark.line, node.start_mark.column)


def _syntax_error(error: yaml.YAMLError, text: Text, values: Substitution) -> FluxError:
    if isinstance(error, yaml.reader.ReaderError):
        before = BREAK.split(text.text[: error.position])[::2]
        place = text.place(len(before) - 1, len(before[-1]))
        return FluxError(f"the character U+{int(error.character):04X} is not allowed in YAML", place)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = Place(text.source, 0, 0) if mark is None else text.place(mark.line, mark.column)
    problem = getattr(error, "problem", None) or "it is not YAML"
    line = text.source.lines[place.line] if place.line < len(text.source.lines) else ""
    unresolved = next(
        (found for found in PLACEHOLDER.finditer(line) if values.value(found[1].strip(), place) is None), None
    )
    hint = "" if unresolved is None else f"; {values.missing(unresolved[1].strip())}"
    return FluxError(f"{problem}{hint}", place)


def _tag(tag: str) -> str:
    shown = tag.replace(_PREFIX, "!!")
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
