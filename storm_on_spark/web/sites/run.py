"""A single run, beside its driver: `storm-spark run --ui` and notebooks."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.config.secrets import hidden
from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.api.info import WINDOWS
from storm_on_spark.plan.explain.document import explain_dict
from storm_on_spark.web.model import (
    ActionName,
    Change,
    ChangedLevel,
    ClusterView,
    Link,
    LogFile,
    LogPart,
    Part,
    PlacedError,
    PlannedOperator,
    RefusedError,
    Samples,
    Shape,
    TopologyView,
)
from storm_on_spark.web.sites.sampling import sample_told, wanted_sample

if TYPE_CHECKING:
    from storm_on_spark.plan.model import PlacedPlan
    from storm_on_spark.spark.running.topology import TopologyQuery

_MOST_CHANGES: Final = 200
LOG: Final = "spark.log"


class RunSite:
    """The topology of this process.

    Args:
        query: what runs.
        log: the file that Spark logs to; None if there is none.
        now: seconds since the epoch.
        stopped: called instead of ending the query at once when somebody kills it here: the command that runs it drains
            it then.
    """

    is_cluster = False
    actions: tuple[ActionName, ...] = ("activate", "deactivate", "kill", "sample")

    def __init__(
        self,
        query: TopologyQuery,
        log: Path | None = None,
        now: Callable[[], float] = time.time,
        stopped: Callable[[], object] | None = None,
    ) -> None:
        self._query = query
        self._log = log
        self._now = now
        self._stopped = stopped or query.stop
        self._shape = Shape() if query.plan is None else shape_of(query.plan)
        self._conf = {} if query.plan is None else hidden(dict(query.plan.conf))
        self._changes: deque[Change] = deque(maxlen=_MOST_CHANGES)
        self.title = query.status_info().name
        self.id = self.title

    def now(self) -> float:
        """Returns seconds since the epoch."""
        return self._now()

    def cluster(self) -> ClusterView | None:
        """There is none."""
        return None

    def topologies(self) -> list[TopologyView]:
        """Returns the one."""
        return [self.topology(self.id)]

    def topology(self, topology_id: str) -> TopologyView:
        """Returns it."""
        if topology_id != self.id:
            raise NotAliveError(f"{topology_id[:200]!r} doesn't run here; {self.id!r} does")
        info = self._query.status_info(WINDOWS)
        return TopologyView(
            self.id,
            info.name,
            info.status,
            info.uptime_secs,
            info,
            self._now(),
            self._shape,
            self._conf,
            tuple(PlacedError(error) for error in info.errors),
        )

    def samples(self, topology_id: str) -> Samples:
        """Returns the last samples of its tuples."""
        self.topology(topology_id)
        book = self._query.samples
        return Samples(book.rates, tuple(book.gather()))

    def act(self, subject: str, action: ActionName, options: Mapping[str, str], who: str) -> str:
        """Changes it."""
        self.topology(subject)
        if action not in self.actions:
            raise RefusedError(f"{action} needs a cluster; a single run offers {', '.join(self.actions)}")
        if not self._query.isActive:
            raise RefusedError(f"{self.id} has ended")
        if action == "sample":
            return self._sample(options, who)
        # First what is quick: ending may take a while.
        self._changes.append(Change(self._now(), who, action, self.id))
        if action == "activate":
            self._query.activate()
        elif action == "deactivate":
            self._query.deactivate()
        else:
            threading.Thread(target=self._stopped, name="ui-kill", daemon=True).start()
        return {"activate": "Spouts emit.", "deactivate": "Spouts don't emit.", "kill": "The topology ends."}[action]

    def _sample(self, options: Mapping[str, str], who: str) -> str:
        component, percent = wanted_sample(options)
        if component and component not in self._shape.parts:
            raise RefusedError(f"there is no component {component[:200]!r}")
        try:
            self._query.samples.set(component, percent)
        except OSError as error:
            raise RefusedError(f"the checkpoint can't be written: {error.strerror}") from error
        said = sample_told(component, percent)
        self._changes.append(Change(self._now(), who, said, self.id))
        return f"From now on: {said}."

    def log_levels(self, topology_id: str) -> list[ChangedLevel]:
        """A single run has the levels of its process; none are changed here."""
        return []

    def changes(self, topology_id: str = "") -> list[Change]:
        """Returns what was changed, newest first."""
        return list(reversed(list(self._changes)))

    def logs(self, topology_id: str) -> list[LogFile]:
        """Returns Spark's log."""
        try:
            found = None if self._log is None else self._log.stat()
        except OSError:
            found = None
        return [] if found is None else [LogFile(LOG, "", found.st_size, found.st_mtime)]

    def read_log(self, log: str, start: int, length: int) -> LogPart:
        """Returns a part of it."""
        if self._log is None or log != LOG:
            raise NotAliveError(f"there is no log {log[:200]!r}")
        try:
            with self._log.open("rb") as file:
                size = file.seek(0, 2)
                first = min(size, start if start >= 0 else max(0, size + start))
                file.seek(first)
                return LogPart(file.read(max(0, min(length, size - first))).decode(errors="replace"), first, size)
        except OSError as error:
            raise NotAliveError(f"the log can't be read: {error.strerror}") from error


def shape_of(plan: PlacedPlan) -> Shape:
    """Returns the components of a plan, and what they became."""
    found: dict[str, Any] = explain_dict(plan)
    stages = {stage["index"]: stage for stage in found["stages"]}
    return Shape(
        {
            name: Part(name, part["kind"], tuple(part["tasks"]), part["executors"], part["stage"], part["why"])
            for name, part in found["components"].items()
        },
        tuple(
            Link(*(edge[key] for key in ("source", "stream", "target", "grouping", "becomes")))
            for edge in found["edges"]
        ),
        tuple(
            PlannedOperator(
                operator["becomes"],
                operator["exchange"],
                tuple((at, stages[at]["kind"], tuple(stages[at]["components"])) for at in operator["stages"]),
            )
            for operator in found["operators"]
        ),
        found["partitions"],
        len(found["acker_tasks"]),
    )
