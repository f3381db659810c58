"""Graph algorithms for the passes; all are deterministic."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

Arcs = Sequence[tuple[str, str]]
"""Pairs of source and target; parallel ones and loops are allowed."""


def successors(nodes: Iterable[str], arcs: Arcs) -> dict[str, list[str]]:
    """Returns the distinct targets of each node, sorted.

    Example:
        >>> successors(["a", "b"], [("a", "b"), ("a", "b"), ("b", "a")])
        {'a': ['b'], 'b': ['a']}
    """
    found: dict[str, set[str]] = {node: set() for node in nodes}
    for source, target in arcs:
        found[source].add(target)
    return {node: sorted(targets) for node, targets in found.items()}


def distances(starts: Iterable[str], following: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Returns how many arcs each node is away from the nearest of `starts`, if it can be reached.

    Example:
        >>> distances(["a"], {"a": ["b", "c"], "b": ["c"], "c": [], "d": ["a"]})
        {'a': 0, 'b': 1, 'c': 1}
    """
    found = dict.fromkeys(starts, 0)
    front = list(found)
    while front:
        reached = []
        for node in front:
            for target in following[node]:
                if target not in found:
                    found[target] = found[node] + 1
                    reached.append(target)
        front = reached
    return found


def topological_order(nodes: Iterable[str], arcs: Arcs) -> list[str]:
    """Returns `nodes` in topological order; nodes without an order between them are sorted by name.

    Raises:
        ValueError: the arcs form a cycle.

    Example:
        >>> topological_order(["c", "b", "a"], [("c", "a"), ("b", "a")])
        ['b', 'c', 'a']
    """
    following = successors(nodes, arcs)
    waiting = dict.fromkeys(following, 0)
    for targets in following.values():
        for target in targets:
            waiting[target] += 1
    free = [node for node, count in waiting.items() if not count]
    heapq.heapify(free)
    order = []
    while free:
        node = heapq.heappop(free)
        order.append(node)
        for target in following[node]:
            waiting[target] -= 1
            if not waiting[target]:
                heapq.heappush(free, target)
    if len(order) < len(following):
        raise ValueError(f"there is a cycle among {sorted(set(following) - set(order))}")
    return order


def find_cycle(nodes: Iterable[str], following: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns the nodes of one cycle in order, the alphabetically first one first; empty if there is none.

    Only `nodes` are looked at.

    Example:
        >>> find_cycle("abcd", {"a": ["b"], "b": ["c"], "c": ["d", "b"], "d": []})
        ['b', 'c']
    """
    inside = set(nodes)
    # A node without a successor inside is on no cycle: remove such nodes until none is left.
    dead_ends = {node for node in inside if not inside.intersection(following[node])}
    while dead_ends:
        inside -= dead_ends
        dead_ends = {node for node in inside if not inside.intersection(following[node])}
    if not inside:
        return []
    # Every remaining node has a remaining successor, so a walk must visit some node twice.
    walk: list[str] = []
    node = min(inside)
    while node not in walk:
        walk.append(node)
        node = next(target for target in following[node] if target in inside)
    cycle = walk[walk.index(node) :]
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]
