"""All pages: where each is, how it looks, and what makes what it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from storm_on_spark.web.pages import logs, samples, site, topology
from storm_on_spark.web.pages.question import Question


@dataclass(frozen=True)
class Page:
    """A page that is read; everybody with a session may."""

    path: str
    """Below the root of the pages, with parameters in braces."""
    template: str
    make: Callable[[Question], dict[str, Any] | str]
    """Returns what its template shows, or the path of the page to go to instead."""


PAGES: Final = (
    Page("/", "cluster.html", site.home),
    Page("/supervisors", "supervisors.html", site.supervisors),
    Page("/configuration", "configuration.html", site.configuration),
    Page("/changes", "changes.html", site.changes),
    Page("/logs", "logs.html", logs.logs),
    Page("/topology/{id}", "topology.html", topology.topology),
    Page("/topology/{id}/errors", "errors.html", topology.errors),
    Page("/topology/{id}/samples", "samples.html", samples.samples),
    Page("/topology/{id}/tree/{root}", "tree.html", samples.tree),
    Page("/topology/{id}/configuration", "configuration.html", topology.configuration),
    Page("/topology/{id}/changes", "changes.html", topology.changes),
    Page("/topology/{id}/logs", "logs.html", logs.logs),
    Page("/topology/{id}/component/{component}", "component.html", topology.component),
    Page("/topology/{id}/component/{component}/task/{task}", "task.html", topology.task),
)
