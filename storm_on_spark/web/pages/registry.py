"""All pages: where each is, how it looks, and what makes what it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic

from storm_on_spark.web.model import Site, Subjects
from storm_on_spark.web.pages import jobs, logs, samples, site, streams, topology
from storm_on_spark.web.pages.question import Asked, S
from storm_on_spark.web.sites.streams import StreamsSite


@dataclass(frozen=True)
class Page(Generic[S]):
    """A page that is read; everybody with a session may."""

    path: str
    """Below the root of the pages, with parameters in braces."""
    template: str
    make: Callable[[Asked[S]], dict[str, Any] | str]
    """Returns what its template shows, or the path of the page to go to instead."""
    far: bool = False
    """Whether this asks other hosts."""


@dataclass(frozen=True)
class Book(Generic[S]):
    """The pages of a kind of site."""

    subjects: Mapping[str, Callable[[S], Subjects]]
    """What its actions change, as named in paths, such as `topology`; and the attribute of a site that changes it."""
    pages: tuple[Page[S], ...]
    menu: Callable[[S], tuple[tuple[str, str], ...]]
    """Returns paths below the root, and words, of the pages that every page links to."""


PAGES: Final[tuple[Page[Site], ...]] = (
    Page("/", "cluster.html", site.home),
    Page("/supervisors", "supervisors.html", site.supervisors),
    Page("/configuration", "configuration.html", site.configuration),
    Page("/changes", "changes.html", site.changes),
    Page("/logs", "logs.html", logs.logs, far=True),
    Page("/topology/{id}", "topology.html", topology.topology),
    Page("/topology/{id}/errors", "errors.html", topology.errors),
    Page("/topology/{id}/samples", "samples.html", samples.samples, far=True),
    Page("/topology/{id}/tree/{root}", "tree.html", samples.tree, far=True),
    Page("/topology/{id}/configuration", "configuration.html", topology.configuration),
    Page("/topology/{id}/changes", "changes.html", topology.changes),
    Page("/topology/{id}/logs", "logs.html", logs.logs, far=True),
    Page("/topology/{id}/component/{component}", "component.html", topology.component),
    Page("/topology/{id}/component/{component}/task/{task}", "task.html", topology.task),
)
"""Of a cluster, or a single run."""

STREAM_PAGES: Final[tuple[Page[StreamsSite], ...]] = (
    Page("/", "streams.html", streams.home),
    Page("/containers", "containers.html", streams.containers),
    Page("/changes", "changes.html", streams.changes),
    Page("/stream/{id}", "stream.html", streams.stream),
    Page("/jobs", "jobs.html", jobs.jobs),
    Page("/job/{id}", "job.html", jobs.job),
    Page("/execution/{id}", "execution.html", jobs.execution),
)
"""Of an admin of streams."""

_OF_CLUSTER: Final = (("/", "Cluster"), ("/supervisors", "Supervisors"), ("/configuration", "Configuration"))
_OF_ALL: Final = (("/logs", "Logs"), ("/changes", "Changes"))

TOPOLOGIES: Final[Book[Site]] = Book(
    {"topology": lambda site: site}, PAGES, lambda site: (*(_OF_CLUSTER if site.is_cluster else ()), *_OF_ALL)
)
STREAMS: Final[Book[StreamsSite]] = Book(
    {"stream": lambda site: site, "job": lambda site: site.job_acts, "execution": lambda site: site.executions},
    STREAM_PAGES,
    lambda site: (("/", "Streams"), ("/jobs", "Jobs"), ("/containers", "Containers"), ("/changes", "Changes")),
)
