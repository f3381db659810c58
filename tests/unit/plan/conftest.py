from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from storm_on_spark.api import BaseBasicBolt, BaseRichSpout, CustomStreamGrouping, Topology, TopologyBuilder


class Spout(BaseRichSpout):
    def next_tuple(self): ...

    def declare_output_fields(self, declarer):
        declare(declarer)


class Stateless(BaseBasicBolt):
    stateless = True

    def execute(self, tup, collector): ...

    def declare_output_fields(self, declarer):
        declare(declarer)


class Stateful(Stateless):
    stateless = False


class First(CustomStreamGrouping):
    def choose_tasks(self, task_id, values):
        return []


def declare(declarer):
    declarer.declare(["key", "value"])
    declarer.declare_stream("side", ["key"])
    declarer.declare_stream("direct", ["key"], direct=True)


def subscribe(bolt, grouping, source):
    stream = {"direct": "direct"}.get(grouping, "default")
    arguments = {"fields": ["key"], "partial_key": ["key"], "custom": [First()]}.get(grouping, [])
    getattr(bolt, f"{grouping}_grouping")(source, *arguments, stream=stream)


@pytest.fixture(scope="session")
def build():
    """Builds a topology from a drawing.

    `{"s": [], "a": ["s"], "b!": ["fields s", "a"]}` has the spout s, the stateless bolt a, fed by s through a
    shuffle, and the stateful bolt b, fed by s by fields grouping and by a through a shuffle.
    """

    def build(drawing: Mapping[str, Sequence[str]], tasks: Mapping[str, int] | None = None) -> Topology:
        builder = TopologyBuilder()
        for drawn, inputs in drawing.items():
            name = drawn.rstrip("!")
            parallelism = (tasks or {}).get(name, 1)
            if not inputs:
                builder.set_spout(name, Spout(), parallelism)
                continue
            bolt = builder.set_bolt(name, Stateful() if drawn.endswith("!") else Stateless(), parallelism)
            for text in inputs:
                grouping, _, source = text.rpartition(" ")
                subscribe(bolt, grouping or "shuffle", source)
        return builder.create_topology()

    return build
