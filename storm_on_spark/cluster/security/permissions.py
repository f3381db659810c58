"""Who may do what: one table of all operations, and what its words mean. Pure.

With `nimbus.authorizer` unset everybody whom the cluster knows may read, and `nimbus.admins` says who may change
something. With Storm's `SimpleACLAuthorizer` a topology belongs to its submitter: its owner and `topology.users` may
change it, `topology.readonly.users` may look at it, `nimbus.users` may submit, and `nimbus.admins` may do everything.
So may anyone with the cluster's token, which Nimbuses and supervisors have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.errors import ForbiddenError
from storm_on_spark.cluster.records import StormBase

Right = Literal["open", "read", "topology read", "topology change", "submit", "see all", "cluster change"]
"""What an operation needs. `open` needs nothing; `read` needs somebody whom the cluster knows."""

_PACKAGE: Final = "org.apache.storm.security.auth.authorizer."
SIMPLE: Final = _PACKAGE + "SimpleACLAuthorizer"
_NOOP: Final = _PACKAGE + "NoopAuthorizer"

READ: Final = "read"
SEE: Final = "topology read"
CHANGE: Final = "topology change"
SUBMIT: Final = "submit"
CLUSTER: Final = "cluster change"
ALL: Final = "see all"

REST: Final[Mapping[tuple[str, str], Right]] = {
    ("GET", "/cluster/configuration"): READ,
    ("GET", "/cluster/summary"): READ,
    ("GET", "/nimbus/summary"): READ,
    ("GET", "/supervisor/summary"): READ,
    ("GET", "/supervisor"): READ,
    ("GET", "/supervisor/{id}/drain"): READ,
    ("POST", "/supervisor/{id}/drain"): CLUSTER,
    ("POST", "/supervisor/{id}/undrain"): CLUSTER,
    ("GET", "/topology/summary"): READ,
    ("GET", "/topology/{id}"): SEE,
    ("GET", "/topology/{id}/component/{component}"): SEE,
    ("GET", "/topology/{id}/metrics"): SEE,
    ("GET", "/topology/{id}/visualization"): SEE,
    ("GET", "/topology/{id}/visualization-init"): SEE,
    ("GET", "/topology/{id}/errors"): SEE,
    ("GET", "/topology/{id}/lag"): SEE,
    ("GET", "/topology/{id}/logconfig"): SEE,
    ("POST", "/topology/{id}/logconfig"): CHANGE,
    ("POST", "/topology/{id}/credentials"): CHANGE,
    ("GET", "/topology-workers/{id}"): SEE,
    ("POST", "/topology/{id}/activate"): CHANGE,
    ("POST", "/topology/{id}/deactivate"): CHANGE,
    ("POST", "/topology/{id}/debug/{action}/{spct}"): CHANGE,
    ("POST", "/topology/{id}/component/{component}/debug/{action}/{spct}"): CHANGE,
    ("POST", "/topology/{id}/rebalance/{wait}"): CHANGE,
    ("POST", "/topology/{id}/kill/{wait}"): CHANGE,
    ("PUT", "/submission/{key}/{artifact}"): SUBMIT,
    ("GET", "/submission/{key}"): READ,
    ("POST", "/topology/submit"): SUBMIT,
    # A configuration with secrets is part of the code.
    ("GET", "/code/{id}/{artifact}"): CHANGE,
    ("GET", "/admin/problems"): ALL,
    ("POST", "/admin/repair"): CLUSTER,
    ("GET", "/openapi.json"): READ,
}
"""Method and path of REST, below `/api/v1`."""

_THRIFT_READ: Final = "getClusterInfo getLeader getTopologySummaries getNimbusConf isTopologyNameAllowed"
_THRIFT_SEE: Final = (
    "getTopologySummaryByName getTopologySummary getTopologyInfo getTopologyInfoByName getTopologyInfoWithOpts "
    "getTopologyInfoByNameWithOpts getTopologyConf getTopology getUserTopology getLogConfig"
)
_THRIFT_CHANGE: Final = (
    "killTopology killTopologyWithOpts activate deactivate debug rebalance setLogConfig uploadNewCredentials"
)
_THRIFT_SUBMIT: Final = "beginFileUpload uploadChunk finishFileUpload submitTopology submitTopologyWithOpts"

THRIFT: Final[Mapping[str, Right]] = {
    **dict.fromkeys(_THRIFT_SEE.split(), SEE),
    **dict.fromkeys(_THRIFT_CHANGE.split(), CHANGE),
    **dict.fromkeys(_THRIFT_SUBMIT.split(), SUBMIT),
    **dict.fromkeys(_THRIFT_READ.split(), READ),
}
"""Method of Thrift. Others that there are need `cluster change`; those that are refused whoever asks need `read`."""

PAGES: Final[Mapping[tuple[str, str], Right]] = {
    ("GET", "/static/{name}"): "open",
    ("GET", "/login"): "open",
    ("POST", "/login"): "open",
    ("POST", "/logout"): READ,
    ("POST", "/link"): READ,
    ("POST", "/topology/{id}/act/{action}"): CHANGE,
    ("GET", "/"): READ,
    ("GET", "/supervisors"): READ,
    ("GET", "/configuration"): READ,
    ("GET", "/changes"): ALL,
    ("GET", "/logs"): ALL,
    ("GET", "/topology/{id}"): SEE,
    ("GET", "/topology/{id}/errors"): SEE,
    ("GET", "/topology/{id}/samples"): SEE,
    ("GET", "/topology/{id}/tree/{root}"): SEE,
    ("GET", "/topology/{id}/configuration"): SEE,
    ("GET", "/topology/{id}/changes"): SEE,
    ("GET", "/topology/{id}/logs"): SEE,
    ("GET", "/topology/{id}/component/{component}"): SEE,
    ("GET", "/topology/{id}/component/{component}/task/{task}"): SEE,
}
"""Method and path of a Nimbus's pages, below their root. Streams have no owners: an admin's pages need `read`, and its
actions `cluster change`.
"""


def page_right(method: str, path: str) -> Right:
    """Returns what a page needs; one that is not in the table needs what those around it do.

    Example:
        >>> page_right("GET", "/topology/{id}/new"), page_right("POST", "/new")
        ('topology read', 'cluster change')
    """
    of_topology = path.startswith("/topology/")
    default: Right = (SEE if of_topology else READ) if method == "GET" else CHANGE if of_topology else CLUSTER
    return PAGES.get((method, path), default)


@dataclass(frozen=True)
class PermissionSettings(Settings):
    """The keys of Storm's `SimpleACLAuthorizer`."""

    authorizer: Annotated[str | None, Config.NIMBUS_AUTHORIZER]
    admins: Annotated[tuple[str, ...] | None, Config.NIMBUS_ADMINS]
    users: Annotated[tuple[str, ...] | None, Config.NIMBUS_USERS]


@dataclass(frozen=True)
class TopologyUsers(Settings):
    """Who may use a topology beside its owner; several names in one text have commas between them."""

    operators: Annotated[str | tuple[str, ...] | None, Config.TOPOLOGY_USERS]
    readers: Annotated[str | tuple[str, ...] | None, Config.TOPOLOGY_READONLY_USERS]


@dataclass(frozen=True)
class Who:
    """Somebody who asks; `trusted` has the cluster's token, or asks where nobody need log in."""

    name: str
    trusted: bool = False


class Permissions:
    """Decides; see the module.

    Args:
        settings: the cluster's.

    Raises:
        SetupError: the authorizer is unknown.

    Example:
        >>> permissions = Permissions(PermissionSettings(SIMPLE, ("root",), None))
        >>> base = StormBase(topology_id="t-1-1", name="t", owner="ann", status="ACTIVE", submitted_at=0.0, launch=1,
        ...                  conf={"topology.readonly.users": ["bob"]})
        >>> [permissions.may(CHANGE, Who(name), base) for name in ("ann", "bob", "root")]
        [True, False, True]
        >>> [permissions.may(SEE, Who(name), base) for name in ("ann", "bob", "eve")]
        [True, True, False]
    """

    def __init__(self, settings: PermissionSettings) -> None:
        if settings.authorizer not in (None, SIMPLE, _NOOP):
            raise SetupError(
                f"{Config.NIMBUS_AUTHORIZER} {settings.authorizer!r:.200} is not supported; a Nimbus has {SIMPLE} and "
                f"{_NOOP}"
            )
        self._settings = settings
        self.by_topology = settings.authorizer == SIMPLE
        """Whether topologies belong to their owners."""

    @classmethod
    def of(cls, conf: Mapping[str, Any]) -> Permissions:
        """Returns what the configuration of a Nimbus asks for.

        Raises:
            SetupError: the authorizer is unknown.
        """
        return cls(PermissionSettings.of(conf))

    def is_admin(self, who: Who) -> bool:
        """Returns whether somebody may do everything."""
        return who.trusted or who.name in (self._settings.admins or ())

    def may(self, right: Right, who: Who, base: StormBase | None = None) -> bool:
        """Returns whether somebody may.

        Args:
            right: what is needed.
            who: whom the cluster knows.
            base: the topology that it is about. None where there is no such topology: then only those who may see
                any are told so.
        """
        if right in ("open", "read") or self.is_admin(who):
            return True
        if not self.by_topology:
            return right in ("topology read", "see all") or self._settings.admins is None
        if right == "submit":
            return not self._settings.users or who.name in self._settings.users
        if right in ("cluster change", "see all") or base is None or not who.name:
            return False
        users = TopologyUsers.of(base.conf)
        lists = [users.operators, *([users.readers] if right == "topology read" else [])]
        return who.name == base.owner or any(who.name in _names(names) for names in lists)

    def check(self, right: Right, who: Who, base: StormBase | None = None, what: str = "that") -> None:
        """Refuses somebody who may not.

        Raises:
            ForbiddenError: it is refused.
        """
        if self.may(right, who, base):
            return
        why = "nimbus.admins says who may"
        if self.by_topology:
            why = "its owner, topology.users, topology.readonly.users and nimbus.admins say who may"
            if right in ("submit", "cluster change"):
                why = f"nimbus.{'users' if right == 'submit' else 'admins'} says who may"
        raise ForbiddenError(f"{who.name or 'nobody'} may not do {what} ({right}): {why}")


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(","))
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()
