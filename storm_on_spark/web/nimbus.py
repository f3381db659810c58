"""The pages of a cluster, on the port of each of its Nimbuses."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import ASGIApp

from storm_on_spark.cluster.daemons.nimbus import Offered
from storm_on_spark.cluster.http.guard import caller_of, is_trusted
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.security.permissions import Right, Who
from storm_on_spark.web.access.gate import Gate
from storm_on_spark.web.access.sessions import Role, Sessions
from storm_on_spark.web.app import App
from storm_on_spark.web.daemon import DaemonLogin, DaemonPages
from storm_on_spark.web.pages.registry import TOPOLOGIES
from storm_on_spark.web.sites.cluster import ClusterSite


@dataclass(frozen=True)
class ClusterLogin(DaemonLogin):
    """The same with owners of topologies, where a cluster has these."""

    control: Control

    def role_of(self, user: str) -> Role:
        """Returns the role of a user who has proved to be that."""
        permissions = self.control.permissions
        return "owner" if permissions.by_topology and not permissions.is_admin(Who(user)) else super().role_of(user)

    def may(self, name: str, right: Right, topology_id: str) -> bool:
        """Returns what the permissions of the cluster say."""
        base = self.control.snapshot().storms.get(topology_id)
        return self.control.permissions.may(right, Who(name), base)


class NimbusPages(DaemonPages):
    """Adds the pages to the REST interface of a Nimbus.

    Args:
        rest: that interface.
        offered: what the Nimbus offers.
    """

    def __init__(self, rest: ASGIApp, offered: Offered) -> None:
        self._permissions = offered.control.permissions
        sessions, login = Sessions(), ClusterLogin(offered.authentication, offered.control)
        gate = Gate(sessions, login, offered.port, secure=offered.secure, local=offered.local)
        pages = App(ClusterSite(offered.control), gate, TOPOLOGIES)
        super().__init__(rest, pages, sessions, offered.authentication, "/api/v1/ui-login")

    def role(self, request: Request) -> Role:
        """Returns the role that a link has for whoever asks for it."""
        permissions, who = self._permissions, Who(caller_of(request), is_trusted(request))
        return "operator" if not permissions.by_topology or permissions.is_admin(who) else "owner"
