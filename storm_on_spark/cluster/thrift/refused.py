"""Methods of Storm's Nimbus that nothing here answers, refused with the exception that Storm declares for them.

Their arguments are not read. What Storm declares no exception for is unknown here: see `answer` in `service`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NoReturn

from storm_on_spark.cluster.thrift.interface import interface

_PAGES: Final = "use the REST interface of the same address, which has Storm UI's paths"
_WORKERS: Final = "this cluster's supervisors report by ZooKeeper or Pacemaker"

INSTEAD: Final = {
    "downloadChunk": "the code of topologies is not given out",
    "getComponentPageInfo": _PAGES,
    "getOwnerResourceSummaries": "Spark's cluster manager knows of resources",
    "getSupervisorAssignments": _WORKERS,
    "getSupervisorPageInfo": _PAGES,
    "getTopologyHistory": "topologies that ended are not kept",
    "getTopologyPageInfo": _PAGES,
    "sendSupervisorWorkerHeartbeat": _WORKERS,
    "sendSupervisorWorkerHeartbeats": _WORKERS,
}
"""Method -> what to do, or where it is."""


class Refused:
    """The methods of `INSTEAD`.

    Example:
        >>> Refused().nothing()
        Traceback (most recent call last):
        AttributeError: nothing
    """

    def __getattr__(self, name: str) -> Callable[[], NoReturn]:
        if name not in INSTEAD:
            raise AttributeError(name)
        return partial(_refuse, name)


def _refuse(name: str) -> NoReturn:
    raise interface().AuthorizationException(msg=f"{name} is not answered here: {INSTEAD[name]}")
