"""Prints the processor time of each page of a large cluster, without browsers: `python -m lab.pages.cost`.

Pages are made and rendered in this process, one after the other. New heartbeats come as in `lab.pages.cluster`.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, cast

from lab.pages.cluster import KnownCluster
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.rest.pages import summaries, topology_page
from storm_on_spark.cluster.rest.picture.snapshot import Picture
from storm_on_spark.web.pages.question import Question
from storm_on_spark.web.pages.registry import PAGES
from storm_on_spark.web.rates import Rates
from storm_on_spark.web.rendering import Renderer
from storm_on_spark.web.sites.cluster import ClusterSite

_NAME = "topology-007-7-1700000000"


def _pages(control: Control) -> dict[str, Callable[[], object]]:
    site, rates, renderer = ClusterSite(control), Rates(), Renderer()
    common: dict[str, Any] = {
        "site": site,
        "session": None,
        "may_act": False,
        "is_cluster": True,
        "here": "/ui/",
    }

    def page(where: str, **path: str) -> Callable[[], object]:
        found = next(each for each in PAGES if each.path == where)

        def show() -> object:
            values = found.make(Question(site, rates, path, {}))
            return renderer.page(found.template, {**common, **cast(dict[str, Any], values)})

        return show

    def rest() -> object:
        picture = Picture.of(control)
        return topology_page.topology_page(picture, picture.snapshot.storms[_NAME], {}, "600")

    return {
        "cluster": page("/"),
        "topology": page("/topology/{id}", id=_NAME),
        "component": page("/topology/{id}/component/{component}", id=_NAME, component="component-03"),
        "REST: topology": rest,
        "REST: topologies": lambda: summaries.topology_summary(Picture.of(control)),
    }


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(prog="python -m lab.pages.cost", description=__doc__)
    parser.add_argument("--topologies", type=int, default=200)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each page")
    parser.add_argument("--profile", default="", help="a page: where its time goes")
    given = parser.parse_args()
    pages = _pages(cast(Control, KnownCluster(given.topologies, given.components)))
    if given.profile:
        profile = cProfile.Profile()
        until = time.monotonic() + given.seconds
        while time.monotonic() < until:
            profile.runcall(pages[given.profile])
        pstats.Stats(profile, stream=sys.stdout).sort_stats("cumulative").print_stats(40)
        return
    print(f"{'page':<20}{'loads':>8}{'mean ms':>10}{'p50 ms':>10}{'most ms':>10}  of processor time")
    for name, show in pages.items():
        took = []
        until = time.monotonic() + given.seconds
        while time.monotonic() < until:
            begun = time.process_time()
            show()
            took.append(1e3 * (time.process_time() - begun))
            # A page requested again at once would be answered from the cache of the last half second.
            time.sleep(0.02)
        mean, median = statistics.fmean(took), statistics.median(took)
        print(f"{name:<20}{len(took):>8}{mean:>10.2f}{median:>10.2f}{max(took):>10.2f}")


if __name__ == "__main__":
    main()
