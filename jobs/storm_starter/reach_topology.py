"""storm-starter's ReachTopology: how many people saw a page, counted again for each question.

A page has tweeters, each of them followers, and each follower counts once. What to look for: batch bolts, one instance
per request, that are told when they have all of its tuples.

    python jobs/storm_starter/reach_topology.py foo.com/blog/1 engineering.twitter.com/blog/5
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from storm_on_spark import (
    BaseBasicBolt,
    BasicOutputCollector,
    Fields,
    OutputFieldsDeclarer,
    Topology,
    TopologyContext,
    Tuple,
)
from storm_on_spark.coordination import BaseBatchBolt, BatchBoltCollector
from storm_on_spark.drpc import LinearDRPCTopologyBuilder

FUNCTION = "reach"
conf: dict[str, Any] = {}

TWEETERS = {
    "foo.com/blog/1": ["sally", "bob", "tim", "george", "nathan"],
    "engineering.twitter.com/blog/5": ["adam", "david", "sally", "nathan"],
    "tech.backtype.com/blog/123": ["tim", "mike", "john"],
}
FOLLOWERS = {
    "sally": ["bob", "tim", "alice", "adam", "jim", "chris", "jai"],
    "bob": ["sally", "nathan", "jim", "mary", "david", "vivian"],
    "tim": ["alex"],
    "nathan": ["sally", "bob", "adam", "harry", "chris", "vivian", "emily", "jordan"],
    "adam": ["david", "carissa"],
    "mike": ["john", "bob"],
    "john": ["alice", "nathan", "jim", "mike", "bob"],
}


class GetTweeters(BaseBasicBolt):
    """Emits who tweeted a page."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for tweeter in TWEETERS.get(tup[1], ()):
            collector.emit([tup[0], tweeter])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "tweeter"))


class GetFollowers(BaseBasicBolt):
    """Emits who follows a tweeter."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for follower in FOLLOWERS.get(tup[1], ()):
            collector.emit([tup[0], follower])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "follower"))


class PartialUniquer(BaseBatchBolt):
    """Counts the different followers that come to one task."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchBoltCollector, batch_id: Any
    ) -> None:
        self.collector, self.id = collector, batch_id
        self.followers: set[str] = set()

    def execute(self, tup: Tuple) -> None:
        self.followers.add(tup[1])

    def finish_batch(self) -> None:
        self.collector.emit([self.id, len(self.followers)])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "partial-count"))


class CountAggregator(BaseBatchBolt):
    """Adds up the counts of all tasks."""

    def prepare(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: BatchBoltCollector, batch_id: Any
    ) -> None:
        self.collector, self.id, self.count = collector, batch_id, 0

    def execute(self, tup: Tuple) -> None:
        self.count += tup[1]

    def finish_batch(self) -> None:
        self.collector.emit([self.id, self.count])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("id", "reach"))


def builder() -> LinearDRPCTopologyBuilder:
    """Returns the chain of bolts."""
    found = LinearDRPCTopologyBuilder(FUNCTION)
    found.add_bolt(GetTweeters(), 4)
    found.add_bolt(GetFollowers(), 12).shuffle_grouping()
    found.add_bolt(PartialUniquer(), 6).fields_grouping(Fields("id", "follower"))
    found.add_bolt(CountAggregator(), 3).fields_grouping(Fields("id"))
    return found


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology, for the servers of `drpc.servers`."""
    return builder().create_remote_topology()


if __name__ == "__main__":
    from storm_on_spark import LocalCluster, LocalDRPC

    with LocalDRPC() as drpc, LocalCluster() as cluster:
        cluster.submit_topology("reach", conf, builder().create_local_topology(drpc))
        for page in sys.argv[1:] or [*TWEETERS, "notaurl.com"]:
            print(f"Reach of {page}: {drpc.execute(FUNCTION, page)}")
