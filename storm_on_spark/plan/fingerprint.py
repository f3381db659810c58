"""The fingerprint: the parts of a plan on which a checkpoint depends, which may not change between two starts.

The checkpoint has state by operator and key, and tuples in flight by task. Code, configuration, the
number of executors and everything stateless may change; where state and tuples in flight would be lost or
misread, the second start has to be refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from storm_on_spark.api.text.wording import other_format
from storm_on_spark.plan.explain.words import listed, of_tasks
from storm_on_spark.plan.model import EdgeKind, Operator, PlacedPlan, PlannedComponent

VERSION = 2
"""The format version of the fingerprint."""


def fingerprint(plan: PlacedPlan) -> dict[str, Any]:
    """Returns the fingerprint of `plan` as a JSON object: what may not change while its checkpoint is in use."""
    operators = [operator for operator in plan.operators if operator.state]
    position = {stage.index: at for at, operator in enumerate(operators) for stage in operator.stages}
    return {
        "version": VERSION,
        "partitions": plan.partitions,
        # Spark numbers the stateful operators of a query and keeps the state of each under its number.
        "operators": [_operator(operator) for operator in operators],
        "components": {component.id: _component(plan, component, position) for component in plan.components.values()},
        "acker": {"keys": [plan.keys[task] for task in plan.acker_tasks]},
        "carried": [[edge.source, edge.stream, edge.target] for edge in plan.edges if edge.kind is EdgeKind.CARRIED],
    }


def _operator(operator: Operator) -> str:
    # Within an operator that executes several stages, a bolt's state is found by its task, whatever its stage.
    return operator.stages[0].kind.value if len(operator.stages) == 1 else "joined"


def _component(plan: PlacedPlan, component: PlannedComponent, position: Mapping[int, int]) -> dict[str, Any]:
    spec = plan.topology[component.id]
    operator = None if component.stateless or spec.is_spout else position[component.stage]
    native = {"native": True} if component.id in plan.native_spouts else {}
    layout = getattr(spec.component, "state_layout", None)
    return {
        **native,
        **({"layout": layout} if isinstance(layout, str) else {}),
        "spout": spec.is_spout,
        "stateful": not component.stateless,
        "tasks": list(component.tasks),
        "operator": operator,
        # Under which the operator keeps the state of each task. A spout's is kept by task, beside its log.
        "keys": [plan.keys[task] for task in component.tasks] if operator is not None else [],
        "streams": {name: stream.fields.to_list() for name, stream in sorted(spec.streams.items())},
    }


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Returns why a plan can't continue from a checkpoint, one sentence for each reason; empty if it can.

    Args:
        old: the fingerprint in the checkpoint.
        new: the fingerprint of the plan that is to start.

    Example:
        >>> old = {"version": 2, "partitions": 2, "operators": ["acker"], "components": {},
        ...        "acker": {"keys": [0]}, "carried": []}
        >>> compare(old, old)
        []
        >>> compare(old, {**old, "partitions": 3})
        ["the checkpoint was written with 2 partitions, which can't become 3"]
    """
    if other := other_version(old):
        return [other]
    # Where something else is wrong, other places follow from it.
    return list(_differences(old, new)) or list(_moves(old, new))


def other_version(printed: Mapping[str, Any]) -> str | None:
    """Returns why this release can't read a checkpoint with this fingerprint; None if it can."""
    if (version := printed.get("version")) == VERSION:
        return None
    return other_format("the checkpoint's plan", version, VERSION)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if old["partitions"] != new["partitions"]:
        before, after = old["partitions"], new["partitions"]
        yield f"the checkpoint was written with {before} partitions, which can't become {after}"
    if len(old["acker"]["keys"]) != len(new["acker"]["keys"]):
        before, after = (len(side["acker"]["keys"]) for side in (old, new))
        yield (
            f"there were {before} acker tasks and now there are {after}, but each holds pending tuple trees: set "
            f"topology.acker.executors to {before}"
        )
    for name, was in old["components"].items():
        if was["stateful"]:
            yield from _stateful_differences(name, was, new["components"].get(name))
    if (was_read := _native(old)) != (is_read := _native(new)):
        yield (
            f"Spark read the spouts {listed(was_read)} itself and now {listed(is_read)}, but it knows its sources by "
            "their number"
        )
    if old["operators"] != new["operators"]:
        before, after = (listed(side["operators"]) for side in (old, new))
        yield f"the query had the stateful stages {before} and now has {after}, which mixes up their state"
    yield from _carried_differences(old, new)


def _stateful_differences(name: str, was: Mapping[str, Any], now: Mapping[str, Any] | None) -> Iterator[str]:
    what = f'{"spout" if was["spout"] else "bolt"} "{name}"'
    if now is None:
        yield f"{what} is gone, but the checkpoint holds its state"
        return
    if was["spout"] != now["spout"]:
        yield f"{what} has become a {'spout' if now['spout'] else 'bolt'}, but the checkpoint holds its state"
        return
    if not now["stateful"]:
        yield f"{what} has become stateless, but the checkpoint holds its state"
        return
    if (before := was.get("layout")) != (after := now.get("layout")):
        yield f"{what} kept the state of {before or 'code of its own'} and now of {after or 'code of its own'}"
    yield from _task_differences(what, was, now)
    if was["operator"] != now["operator"]:
        yield f"{what} has moved to another stateful stage, where its state is not found"
    if was["spout"]:
        # The spout log may hold its tuples, written with the old fields.
        for stream, fields in was["streams"].items():
            if now["streams"].get(stream) != fields:
                now_has = listed(now["streams"].get(stream, []))
                yield (
                    f'{what} had a stream "{stream}" with the fields {listed(fields)} and now has {now_has}, '
                    "but the spout log may hold tuples of it"
                )


def _task_differences(what: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    before, after = was["tasks"], now["tasks"]
    if len(before) != len(after):
        yield f"{what} had {of_tasks(before)} and now has {of_tasks(after)}; the number of tasks is fixed"
    elif before != after:
        yield (
            f"{what} had {of_tasks(before)} and now has {of_tasks(after)}, because components that come "
            "before it in the alphabet were added, removed or given other tasks"
        )


def _native(printed: Mapping[str, Any]) -> list[str]:
    return [name for name, component in printed["components"].items() if component.get("native")]


def _moves(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    both = {name: (was, new["components"][name]) for name, was in old["components"].items() if was["stateful"]}
    moved = [f'bolt "{name}"' for name, (was, now) in both.items() if was["keys"] != now["keys"]]
    if old["acker"] != new["acker"]:
        moved.append("the acker")
    for what in moved:
        yield f"{what} moves to other partitions, because bolts with state were added"


def _carried_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for source, stream, target in old["carried"]:
        what = f'the back edge from stream "{stream}" of "{source}" to "{target}"'
        if [source, stream, target] not in new["carried"]:
            yield f"{what} is gone, but the checkpoint may hold tuples on their way over it"
            continue
        was, now = (side["components"][target] for side in (old, new))
        if not was["stateful"]:
            yield from _task_differences(f'bolt "{target}", to which {what} leads,', was, now)
