"""Pages of an admin: its streams, one of them, its containers, and what was changed."""

from __future__ import annotations

from typing import Any

from storm_on_spark.web.pages.question import Asked
from storm_on_spark.web.pictures.streams import stream_graph
from storm_on_spark.web.sites.streams import StreamsSite

Question = Asked[StreamsSite]


def home(question: Question) -> dict[str, Any]:
    """All streams, with their states and rates."""
    site = question.site
    found = list(site.streams().values())
    return {
        "admin": site.admin(),
        "streams": found,
        "deployed": sum(each.state not in ("undeployed", "unknown") for each in found),
        "failed": sum(bool(each.errors) or each.state == "failed" for each in found),
        "modules": sum(len(each.instances) for each in found),
    }


def stream(question: Question) -> dict[str, Any]:
    """One stream: its picture, its modules, where they run, and what was done with it."""
    site = question.site
    view = site.stream(question.path["id"])
    changes = [each for each in site.changes() if each.topology == view.name and not each.what.endswith("job")]
    return {"admin": site.admin(), "view": view, "graph": stream_graph(view), "changes": changes[:10]}


def containers(question: Question) -> dict[str, Any]:
    """The containers, and the modules in each."""
    site = question.site
    return {
        "admin": site.admin(),
        "instances": site.instances(),
        "now": site.now(),
        "known": site.streams(),
        "jobs": site.jobs(),
    }


def changes(question: Question) -> dict[str, Any]:
    """Who changed what, and when."""
    site = question.site
    return {"changes": site.changes(), "streams": site.streams(), "jobs": site.jobs()}
