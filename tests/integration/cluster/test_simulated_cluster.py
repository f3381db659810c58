"""The cluster that users have in their tests."""

from __future__ import annotations

import doctest
import os
import signal
from pathlib import Path

from storm_on_spark.cluster.zookeeper import ZooKeeperServer
from storm_on_spark.testing.simulated.cluster import SimulatedCluster


def test_the_example_of_its_documentation_runs(tmp_path: Path) -> None:
    text = (SimulatedCluster.__doc__ or "").replace("# doctest: +SKIP", "")
    names = {
        "Path": lambda folder: tmp_path / Path(folder).name,
        "SimulatedCluster": SimulatedCluster,
        "ZooKeeperServer": ZooKeeperServer,
        "os": os,
        "signal": signal,
    }
    example = doctest.DocTestParser().get_doctest(text, names, "SimulatedCluster", None, None)
    said: list[str] = []
    done = doctest.DocTestRunner().run(example, out=said.append)

    assert done.attempted == 1
    assert not done.failed, "".join(said)
