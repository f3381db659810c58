"""Pages about the whole site: the cluster, its supervisors, its configuration, and what was changed."""

from __future__ import annotations

from typing import Any

from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.web.model import ClusterView
from storm_on_spark.web.pages.question import Question
from storm_on_spark.web.pages.topology import warnings_of
from storm_on_spark.web.rendering import path


def home(question: Question) -> dict[str, Any] | str:
    """The first page: the only topology of a run, or a cluster with its daemons and topologies."""
    found = question.site.topologies()
    cluster = question.site.cluster()
    if cluster is None and len(found) == 1:
        return path("topology", found[0].id)
    rows = []
    for view in found:
        pace = question.rates.look(view)
        rows.append({"view": view, "pace": pace, "warnings": warnings_of(question, view, pace)})
    return {"cluster": cluster, "rows": rows, "warned": sum(bool(row["warnings"]) for row in rows)}


def supervisors(question: Question) -> dict[str, Any]:
    """The supervisors, and the drivers on each."""
    cluster = _cluster(question)
    drivers: dict[str, list[Any]] = {}
    for view in question.site.topologies():
        drivers.setdefault(view.supervisor, []).append(view)
    return {"cluster": cluster, "drivers": drivers}


def configuration(question: Question) -> dict[str, Any]:
    """The configuration of the Nimbus that answers."""
    return {"cluster": (cluster := _cluster(question)), "conf": sorted(cluster.conf.items())}


def changes(question: Question) -> dict[str, Any]:
    """Who changed what, and when."""
    names = {view.id: view.name for view in question.site.topologies()}
    return {"changes": question.site.changes(), "names": names}


def _cluster(question: Question) -> ClusterView:
    cluster = question.site.cluster()
    if cluster is None:
        raise NotAliveError("a single run has no cluster")
    return cluster
