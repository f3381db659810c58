"""YAML of bounded depth, size, aliases and length of numbers: too much is refused before anything is made of it."""

from __future__ import annotations

from typing import Final

import yaml

MAX_DEPTH: Final = 50
MAX_NODES: Final = 100_000
MAX_ALIASES: Final = 50
_MOST_DIGITS: Final = 100
_NUMBERS: Final = frozenset(("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"))


class BoundedLoader(yaml.SafeLoader):
    """Plain data only. A text takes time in proportion to its length."""

    def __init__(self, stream: str | bytes) -> None:
        super().__init__(stream)
        self._depth = 0
        self._nodes = 0
        self._aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Returns the next node.

        Raises:
            yaml.MarkedYAMLError: it is one too many, or too deep.
        """
        if self.check_event(yaml.AliasEvent):
            self._aliases += 1
            if self._aliases > MAX_ALIASES:
                raise self._refused(f"more than {MAX_ALIASES} aliases (*name)")
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._refused(f"it has more than {MAX_NODES:,} values")
        if self._depth > MAX_DEPTH:
            raise self._refused(f"it is nested more than {MAX_DEPTH} levels deep")
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def compose_scalar_node(self, anchor: dict[str, yaml.Node]) -> yaml.ScalarNode:
        """Returns the next node, which is a scalar.

        Raises:
            yaml.MarkedYAMLError: it is a number that no one means. One in base 60 takes time by the square of its
                length.
        """
        node = super().compose_scalar_node(anchor)
        if node.tag in _NUMBERS and len(node.value) > _MOST_DIGITS:
            problem = f"a number of {len(node.value):,} characters; at most {_MOST_DIGITS} are read"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return node

    def _refused(self, problem: str) -> yaml.MarkedYAMLError:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call] # PyYAML's
        return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def check_size(node: yaml.Node) -> None:
    """Checks that what a text says is no larger or deeper than a text may be, with aliases counted as often as used.

    Raises:
        yaml.MarkedYAMLError: it is, or an alias is inside of what it names.
    """
    sizes: dict[int, tuple[int, int]] = {}

    def size_of(node: yaml.Node) -> tuple[int, int]:
        found = sizes.get(id(node))
        if found is None:
            sizes[id(node)] = MAX_NODES, MAX_DEPTH  # until it is known: what holds itself has no end
            parts: list[yaml.Node] = []
            if isinstance(node, yaml.MappingNode):
                parts = [each for pair in node.value for each in pair]
            elif isinstance(node, yaml.SequenceNode):
                parts = node.value
            of_parts = [size_of(each) for each in parts]
            depth = 1 + max((depth for _, depth in of_parts), default=-1)
            found = sizes[id(node)] = 1 + sum(count for count, _ in of_parts), depth
        if found[0] > MAX_NODES or found[1] > MAX_DEPTH:
            problem = (
                f"it has more than {MAX_NODES:,} values or {MAX_DEPTH} levels, with aliases counted as often as used"
            )
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return found

    size_of(node)
