"""Plays scenarios: each on its own cluster, then the oracles."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from kazoo.exceptions import KazooException

from lab.failover import history
from lab.failover.cluster import Cluster
from lab.failover.figures import FIGURES
from lab.failover.oracles import check_writers, examine
from lab.failover.scenarios import Scenario
from lab.failover.writes import writes
from lab.suite.scenario import Result as AnyResult
from lab.suite.scenario import ScenarioError, Skipped, judging
from storm_on_spark.api.errors import StormError
from storm_on_spark.cluster.zookeeper.server import ZooKeeperEnsemble


@dataclass
class Result(AnyResult):
    """The result of a scenario."""

    times: dict[str, list[float]] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    leaderships: int = 0
    fenced_writes: int = 0
    refused_writes: int = 0
    topologies: int = 0
    """Acknowledged to a client."""


def together(results: Iterable[Result]) -> list[Result]:
    """Returns one result for each scenario; repeated ones are added up."""
    found: dict[str, Result] = {}
    for result in results:
        if result.scenario not in found:
            found[result.scenario] = copy.deepcopy(result)
            continue
        first = found[result.scenario]
        for name, secs in result.times.items():
            first.times.setdefault(name, []).extend(secs)
        first.skipped = first.skipped and result.skipped
        for name in ("injections", "rows", "problems"):
            getattr(first, name).extend(getattr(result, name))
        for name in ("leaderships", "fenced_writes", "refused_writes", "topologies", "seconds"):
            setattr(first, name, getattr(first, name) + getattr(result, name))
    return list(found.values())


def play(
    scenario: Scenario,
    ensemble: ZooKeeperEnsemble,
    times: int,
    folder: Path,
    patience: float = 1.0,
    pacemakers: int = 0,
) -> Result:
    """Plays one scenario and applies the oracles.

    Args:
        scenario: the scenario.
        ensemble: ZooKeeper; servers that die are restarted.
        times: how often a repeated fault is injected.
        folder: for the run's files; created, and removed if the scenario passed.
        patience: factor on the limits of the figures, for machines that do other work too.
        pacemakers: number of Pacemakers; without any, ZooKeeper keeps the heartbeats.
    """
    result = Result(scenario.name, scenario.title)
    with judging(result, folder):
        ensemble.start()
        cluster = Cluster(ensemble, folder, f"/{folder.name}/storm", pacemakers=pacemakers)
        result.injections, result.times, result.rows = cluster.injections, cluster.times, cluster.rows
        result.problems = cluster.problems
        try:
            try:
                scenario.play(cluster, times)
                cluster.settle()
            except Skipped as reason:
                result.skipped = str(reason)
            except (ScenarioError, StormError, KazooException, httpx.HTTPError, OSError) as error:
                result.problems.append(f"{type(error).__name__}: {error}")
            cluster.close()
            ensemble.start()
            cluster.check_nothing_left()
        finally:
            cluster.end()
        _examine(cluster, result)
        for name, secs in result.times.items():
            limit = FIGURES[name].limit
            result.problems += [
                f"{FIGURES[name].title}: {each:.1f} s" for each in secs if limit and each > limit * patience
            ]
        if not result.injections and scenario.faulty and not result.skipped:
            result.problems.append("no fault was injected")
    return result


def _examine(cluster: Cluster, result: Result) -> None:
    logs = history.read(server.data_dir for server in cluster.ensemble.servers)
    findings = examine(logs, cluster.root, cluster.trusted)
    result.problems += findings.problems
    result.leaderships, result.fenced_writes = len(findings.leaderships), findings.fenced_writes
    result.refused_writes = len(findings.refusals)
    result.topologies = len(set(findings.keys.values()))
    checkpoints = cluster.folder / "checkpoints"
    for checkpoint in sorted(checkpoints.iterdir()) if checkpoints.exists() else ():
        result.problems += check_writers(checkpoint.name, writes(checkpoint))
