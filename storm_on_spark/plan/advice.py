"""What is to be said about a topology's configuration before it starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from storm_on_spark.api.building.checks import label
from storm_on_spark.api.config import effective_conf, without_effect, without_effect_sentence
from storm_on_spark.api.topology import Topology


def warning_about(topology: Topology, conf: Mapping[str, object]) -> str:
    """Returns sentences about settings that have no effect, and about those that components lack; "" without any.

    Args:
        topology: asked are those of its components that have a method `advice_at_start`.
        conf: the topology's configuration, as it was given.
    """
    idle = without_effect(conf, *(component.conf for component in topology.components.values()))
    return " ".join(filter(None, [without_effect_sentence(idle), *_lacking(topology, conf)]))


def _lacking(topology: Topology, conf: Mapping[str, object]) -> Iterator[str]:
    for spec in topology.components.values():
        advise = getattr(spec.component, "advice_at_start", None)
        if advise is not None and (said := advise(effective_conf(conf, spec.conf))):
            yield f"{label(spec.id, is_spout=spec.is_spout)}: {said}"
