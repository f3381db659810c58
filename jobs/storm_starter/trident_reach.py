"""storm-starter's TridentReach: how many people saw a page, as a query of two read-only states.

python jobs/storm_starter/trident_reach.py foo.com/blog/1 engineering.twitter.com/blog/5
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from reach_topology import FOLLOWERS, TWEETERS

from storm_on_spark import LocalDRPC, Topology
from storm_on_spark.trident import CombinerAggregator, Sum, TridentTopology
from storm_on_spark.trident.state import MapGet, ReadOnlyMapState, StateFactory

FUNCTION = "reach"
conf: dict[str, Any] = {}


class StaticMap(ReadOnlyMapState[Any]):
    """A map that does not change."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def begin_commit(self, txid: int | None) -> None:
        raise TypeError("nothing is written to this state")

    def commit(self, txid: int | None) -> None:
        raise TypeError("nothing is written to this state")

    def multi_get(self, keys: Sequence[Sequence[Any]]) -> list[Any]:
        return [self.values.get(key) for (key,) in keys]


class StaticMapFactory(StateFactory):
    """Makes such maps."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def make_state(self, conf: Any, metrics: Any, partition_index: int, num_partitions: int) -> StaticMap:
        return StaticMap(self.values)


class One(CombinerAggregator):
    """One, for any number of tuples."""

    def init(self, tup: Any) -> int:
        return 1

    def combine(self, first: int, second: int) -> int:
        return 1

    def zero(self) -> int:
        return 1


def topology(drpc: LocalDRPC | None = None) -> Topology:
    """Returns the topology, for a server of this process or for those of `drpc.servers`."""
    trident = TridentTopology()
    tweeters = trident.new_static_state(StaticMapFactory(TWEETERS))
    followers = trident.new_static_state(StaticMapFactory(FOLLOWERS))
    (
        trident.new_drpc_stream(FUNCTION, drpc)
        .state_query(tweeters, "args", MapGet(), "tweeters")
        .each("tweeters", lambda tup: tup["tweeters"], "tweeter")
        .shuffle()
        .state_query(followers, "tweeter", MapGet(), "followers")
        .each("followers", lambda tup: tup["followers"], "follower")
        .parallelism_hint(2)
        .group_by("follower")
        .aggregate(One(), "one")
        .aggregate("one", Sum(), "reach")
    )
    return trident.build()


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology, for the servers of `drpc.servers`."""
    return topology()


if __name__ == "__main__":
    from storm_on_spark import LocalCluster

    with LocalDRPC() as drpc, LocalCluster() as cluster:
        cluster.submit_topology("reach", conf, topology(drpc))
        for page in sys.argv[1:] or [*TWEETERS, "notaurl.com"]:
            print(f"Reach of {page}: {drpc.execute(FUNCTION, page)}")
