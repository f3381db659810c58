"""Pass: finds the bolts that have no state."""

from __future__ import annotations

from dataclasses import replace

from storm_on_spark.api.adapted import component_class, component_title
from storm_on_spark.api.topology import ComponentSpec
from storm_on_spark.plan.logical import LogicalGraph, Verdict
from storm_on_spark.plan.proof.prover import NotProved, Proof


def judge_statelessness(graph: LogicalGraph) -> LogicalGraph:
    """Adds a verdict for every component: may it run anywhere with nothing saved, or does it have state?

    A bolt is stateless if its class says `stateless = True`, or if it is proved
    (`storm_on_spark.plan.proof.prover`). Otherwise it counts as stateful, which may cost speed but loses no data.
    """
    verdicts = {component: _judge(spec) for component, spec in graph.topology.components.items()}
    return replace(graph, verdicts=verdicts)


def _judge(spec: ComponentSpec) -> Verdict:
    if spec.is_spout:
        return Verdict(False, "stateful: a spout")
    return judge(spec.component)


def judge(bolt: object) -> Verdict:
    """Returns whether a bolt is stateless, and why.

    Example:
        >>> from storm_on_spark.api import BaseBasicBolt
        >>> class Split(BaseBasicBolt):
        ...     def execute(self, tup, collector):
        ...         for word in tup["sentence"].split():
        ...             collector.emit([word])
        >>> judge(Split())
        Verdict(stateless=True, reason='proved: no attribute is stored')
        >>> class Count(BaseBasicBolt):
        ...     def prepare(self, conf, context):
        ...         self.counts = {}
        ...     def execute(self, tup, collector):
        ...         self.counts[tup["word"]] = self.counts.get(tup["word"], 0) + 1
        >>> judge(Count())
        Verdict(stateless=False, reason='stateful: prepare stores self.counts')
    """
    declared = getattr(bolt, "stateless", None)
    if declared is not None:
        if (title := component_title(bolt)) != component_class(bolt).__qualname__:
            # A front end has made the bolt, and knows.
            return Verdict(declared, f"{'stateless' if declared else 'stateful'}: {title}")
        return Verdict(True, "declared") if declared else Verdict(False, "declared stateful")
    proof = Proof(bolt)
    try:
        proof.run()
    except NotProved as reason:
        return Verdict(False, f"stateful: {reason}")
    kept = sorted(set(proof.kept.values()))
    if not kept:
        return Verdict(True, "proved: no attribute is stored")
    return Verdict(True, f"proved: keeps only the {' and the '.join(kept)}")
