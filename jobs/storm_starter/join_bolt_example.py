"""storm-starter's JoinBoltExample: gender and age of the same people, joined in windows of ten seconds.

What to look for: `JoinBolt` in place of the hand-written join of `jobs/single_join.py`. A field with its stream
before it, such as `genders:id`, is an output field of that name.

    storm-spark run jobs/storm_starter/join_bolt_example.py -c rows.count=10
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rows import DEFAULTS, PrinterBolt, RowSpout

from storm_on_spark import Duration, Fields, JoinBolt, Topology, TopologyBuilder

conf = dict(DEFAULTS)


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    builder.set_spout("genders", RowSpout(["id", "gender"], lambda n: (n, ("male", "female")[n % 2])))
    builder.set_spout("ages", RowSpout(["id", "age"], lambda n: (n, n + 20)))
    join = JoinBolt("genders", "id").join("ages", "id", "genders").select("genders:id, ages:id, gender, age")
    joiner = builder.set_bolt("joiner", join.with_tumbling_window(Duration.seconds(10)))
    joiner.fields_grouping("genders", Fields("id")).fields_grouping("ages", Fields("id"))
    builder.set_bolt("printer", PrinterBolt()).shuffle_grouping("joiner")
    return builder.create_topology()


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf)
