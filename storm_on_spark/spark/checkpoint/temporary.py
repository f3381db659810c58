"""Topologies whose state should outlast them: what is said, or refused, where no checkpoint is given."""

from __future__ import annotations

import logging

from storm_on_spark.api.component import CommitsOutside, ReplacesRows
from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.plan.logical import LogicalGraph

log = logging.getLogger(__name__)

_GIVE_ONE = "give a checkpoint (`--checkpoint DIR`, or topology.checkpoint.dir)"


def check_temporary(graph: LogicalGraph) -> None:
    """Checks a topology that is about to start with a temporary checkpoint.

    Its spouts may continue at a position that is kept elsewhere, such as a consumer group's, while its bolts begin
    without state. Then totals begin at zero, and a sink that replaces rows by key writes them over larger ones.

    Raises:
        CheckpointError: a spout would continue amid its input, and bolts have state.
    """
    bolts = [
        name
        for name, part in graph.components.items()
        if not (part.kind.is_spout or part.stateless or part.planned_first)
    ]
    if not bolts:
        return
    stateful = f"{', '.join(bolts)} {'has' if len(bolts) == 1 else 'have'} state"
    reasons: list[str] = []
    for name, spec in graph.topology.components.items():
        component = spec.component
        if isinstance(component, CommitsOutside):
            found = component.committed_outside()
            if found:
                raise CheckpointError(
                    f'spout "{name}" would continue in the middle of its input: {found}. But {stateful}, and would '
                    "begin without it, so counts would be too small, and might replace larger ones. Either continue "
                    f"with the state: {_GIVE_ONE}, the same as before; or begin with all of the input: another "
                    "consumer group, or first_poll_offset_strategy EARLIEST"
                )
            reasons.append(f'what spout "{name}" has acked is not emitted again')
        elif isinstance(component, ReplacesRows) and (replaced := component.replaced_rows()):
            reasons.append(f'bolt "{name}" replaces {replaced}')
    if reasons:
        log.warning(
            "%s, which is lost when this run ends, as its checkpoint is temporary; and %s. Except for a trial, %s",
            stateful,
            ", and ".join(reasons),
            _GIVE_ONE,
        )
