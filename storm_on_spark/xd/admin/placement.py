"""Where the modules of one stream or job run, and the state of the whole. Pure: no I/O and no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

State = Literal["unknown", "deploying", "deployed", "incomplete", "failed", "undeployed"]

EVERY: Final = 0
"""The count of a module that runs in every matching container, including those that start later."""


class Instance(NamedTuple):
    """One instance of a module: the module's label, and its number, counted from 1."""

    label: str
    sequence: int


@dataclass(frozen=True)
class Request:
    """A module to be deployed.

    Args:
        label: of the module, unique in its stream.
        count: of its instances; `EVERY` for one in each matching container.
        matches: whether a container may have it, by the container's id.
    """

    label: str
    count: int = 1
    matches: Callable[[str], bool] = lambda container: True

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"Expected a count of at least 0 of module {self.label}, got {self.count}")


@dataclass(frozen=True)
class Placement:
    """Instances and their containers, and the instances for which there is no container."""

    allocated: Mapping[Instance, str]
    unplaced: tuple[Instance, ...]


def place(
    requests: Sequence[Request], containers: Iterable[str], present: Mapping[Instance, str], load: Mapping[str, int]
) -> Placement:
    """Returns where the modules of one stream run.

    An instance stays where it is while its container is there and matches. Each other instance goes to the matching
    container with the fewest modules of this stream, and among equals to the one with the fewest of all streams.

    Args:
        requests: the modules, in the order of the flow; a label stands once.
        containers: ids of the containers that are there.
        present: the instances that run, also those of departed containers.
        load: container -> number of modules of other streams; 0 where it is not named.

    Example:
        >>> place([Request("time"), Request("log")], ["a", "b"], {}, {}).allocated
        {Instance(label='time', sequence=1): 'a', Instance(label='log', sequence=1): 'b'}
    """
    there = sorted(set(containers))
    matching = {request.label: [name for name in there if request.matches(name)] for request in requests}
    kept: dict[Instance, str] = {}
    counts = {request.label: request.count for request in requests}
    for instance, where in sorted(present.items()):
        wanted = counts.get(instance.label, EVERY)
        if where in matching.get(instance.label, ()) and (wanted == EVERY or instance.sequence <= wanted):
            kept[instance] = where
    allocated: dict[Instance, str] = {}
    unplaced: list[Instance] = []
    own = Counter(kept.values())
    for request in requests:
        candidates = matching[request.label]
        if request.count == EVERY:
            allocated |= _everywhere(request.label, candidates, kept)
            continue
        for sequence in range(1, request.count + 1):
            instance = Instance(request.label, sequence)
            container = kept.get(instance)
            if container is None and candidates:
                container = min(candidates, key=lambda name: (own[name], own[name] + load.get(name, 0), name))
                own[container] += 1
            if container is None:
                unplaced.append(instance)
            else:
                allocated[instance] = container
    return Placement(allocated, tuple(unplaced))


def place_together(
    requests: Sequence[Request], containers: Iterable[str], present: Mapping[Instance, str], load: Mapping[str, int]
) -> Placement:
    """Returns where the modules of a fused stream run: all in one container, which all of them match.

    They stay where they are while that container is there and matches. Otherwise all go to the matching container with
    the fewest modules of other streams. The arguments are those of `place`; each count is at least 1.

    Example:
        >>> requests = [Request("time"), Request("log")]
        >>> sorted(place_together(requests, ["a", "b"], {}, {"a": 3}).allocated.values())
        ['b', 'b']
    """
    instances = [Instance(each.label, number) for each in requests for number in range(1, each.count + 1)]
    there = [name for name in sorted(set(containers)) if all(request.matches(name) for request in requests)]
    if not there:
        return Placement({}, tuple(instances))
    known = Counter(present.values())
    chosen = min(there, key=lambda name: (-known[name], load.get(name, 0), name))
    return Placement(dict.fromkeys(instances, chosen), ())


def state_of(requested: bool, states: Iterable[State], *, complete: bool) -> State:
    """Returns the state of a stream or a job.

    Args:
        requested: whether its deployment is requested.
        states: of the instances that have a container.
        complete: whether every instance has one, and there is at least one.

    Example:
        >>> state_of(True, ["deployed", "deploying"], complete=True)
        'deploying'
        >>> state_of(True, [], complete=False)
        'incomplete'
    """
    found = set(states)
    if not requested:
        return "undeployed"
    for state in ("failed", "deploying", "unknown"):
        if state in found:
            return state
    return "deployed" if complete and found == {"deployed"} else "incomplete"


def _everywhere(label: str, candidates: Sequence[str], kept: Mapping[Instance, str]) -> dict[Instance, str]:
    """Returns an instance for each container; running instances keep their numbers, and new ones get free numbers."""
    placed: dict[Instance, str] = {}
    has: set[str] = set()
    for instance, container in kept.items():
        if instance.label == label and container not in has:
            placed[instance] = container
            has.add(container)
    sequence = 1
    for container in candidates:
        if container in has:
            continue
        while Instance(label, sequence) in placed:
            sequence += 1
        placed[Instance(label, sequence)] = container
    return placed
