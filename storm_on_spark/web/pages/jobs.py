"""Pages of an admin about jobs: all of them, one, and one of its executions."""

from __future__ import annotations

from typing import Any, Final

from storm_on_spark.web.pages.question import Asked
from storm_on_spark.web.sites.jobs import possible
from storm_on_spark.web.sites.streams import StreamsSite

Question = Asked[StreamsSite]

_MOST: Final = 50
"""Executions in a list."""


def jobs(question: Question) -> dict[str, Any]:
    """All jobs, and what ran last."""
    site = question.site
    found = list(site.jobs().values())
    return {
        "admin": site.admin(),
        "jobs": found,
        "known": site.jobs(),
        "executions": site.job_acts.executions()[:_MOST],
        "running": sum(each.runs for each in found),
        "now": site.now(),
    }


def job(question: Question) -> dict[str, Any]:
    """One job: what it is made of, its executions, and what was done with it."""
    site = question.site
    view = site.job(question.path["id"])
    changes = [each for each in site.changes() if each.topology == view.name and each.what.endswith("job")]
    executions = view.executions[:_MOST]
    return {"admin": site.admin(), "view": view, "executions": executions, "changes": changes[:10], "now": site.now()}


def execution(question: Question) -> dict[str, Any]:
    """One execution: its steps, where each ran, and what it said."""
    site = question.site
    found = site.executions.one(question.path["id"])
    return {
        "admin": site.admin(),
        "execution": found,
        "possible": possible(found),
        "known": site.jobs(),
        "now": site.now(),
    }
