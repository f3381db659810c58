"""The table of rights is whole, and says what Storm's authorizer says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import cluster_records as made
import pytest

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cluster.errors import ForbiddenError
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.rest.app import Endpoints
from storm_on_spark.cluster.security.permissions import (
    PAGES,
    REST,
    SIMPLE,
    THRIFT,
    Permissions,
    PermissionSettings,
    Right,
    Who,
    page_right,
)
from storm_on_spark.cluster.thrift.blobs import NoBlobs
from storm_on_spark.cluster.thrift.interface import interface
from storm_on_spark.cluster.thrift.refused import INSTEAD
from storm_on_spark.cluster.thrift.service import Handler
from storm_on_spark.web.pages.registry import PAGES as ALL_PAGES

CONF = {"topology.users": "opal", "topology.readonly.users": ["bob"]}
BASE = made.storm("words-1-1", name="words", owner="ann", conf=CONF)
MAY: dict[str, tuple[Right, ...]] = {
    "": ("open", "read"),
    "eve": ("open", "read", "submit"),
    "bob": ("open", "read", "submit", "topology read"),
    "opal": ("open", "read", "submit", "topology read", "topology change"),
    "ann": ("open", "read", "submit", "topology read", "topology change"),
    "root": ("open", "read", "submit", "topology read", "topology change", "see all", "cluster change"),
}
"""Who has which rights where topologies belong to their owners; nobody gets as far as here over the network."""
RIGHTS: tuple[Right, ...] = MAY["root"]


def permissions(users: tuple[str, ...] | None = ("eve", "bob", "opal", "ann")) -> Permissions:
    return Permissions(PermissionSettings(SIMPLE, ("root",), users))


@pytest.mark.parametrize("name", MAY)
def test_each_role_has_its_rights(name: str) -> None:
    assert tuple(right for right in RIGHTS if permissions().may(right, Who(name), BASE)) == MAY[name]
    assert all(permissions().may(right, Who(name, trusted=True), BASE) for right in RIGHTS)


def test_a_topology_that_is_not_there_is_nobodys_but_an_admins() -> None:
    assert not permissions().may("topology read", Who("ann"))
    assert permissions().may("topology change", Who("root"))


def test_without_the_authorizer_admins_change_everything_and_all_read() -> None:
    for settings in (PermissionSettings(None, ("root",), None), PermissionSettings(None, None, None)):
        some = Permissions(settings)
        assert some.may("topology read", Who("eve"), BASE)
        assert some.may("see all", Who("eve"), BASE)
        assert some.may("topology change", Who("ann"), BASE) is (settings.admins is None)
        assert some.may("cluster change", Who("root"))


def test_an_unknown_authorizer_is_refused_rather_than_left_out() -> None:
    with pytest.raises(SetupError, match="DenyAuthorizer"):
        Permissions(PermissionSettings("org.apache.storm.security.auth.authorizer.DenyAuthorizer", None, None))


def test_every_method_of_rest_and_every_page_is_in_the_table() -> None:
    endpoints = Endpoints(cast("Control", None), 1.0)
    assert {(each.method, each.path) for each in endpoints.routes()} == set(REST)
    pages = {("GET", page.path) for page in ALL_PAGES}
    # A new page has the right of those around it, until it is in the table.
    assert all(page_right(method, path) in ("read", "topology read", "see all") for method, path in pages)
    assert {key for key in PAGES if key[0] == "GET" and not key[1].startswith(("/static", "/login"))} <= pages


def test_every_method_of_thrift_is_in_the_table_or_refused_whoever_asks() -> None:
    blobs = {name for name in vars(NoBlobs) if not name.startswith("_")}
    assert set(THRIFT) == set(interface().Nimbus.thrift_services) - set(INSTEAD) - blobs


@pytest.mark.parametrize("name", MAY)
@pytest.mark.parametrize("method", sorted(THRIFT))
def test_every_method_of_thrift_as_everybody(name: str, method: str) -> None:
    cluster: Any = SimpleNamespace(
        permissions=permissions(), snapshot=lambda: SimpleNamespace(storms={BASE.topology_id: BASE})
    )
    cluster.check = lambda *given: Control.check(cluster, *given)
    for topology in ("words", "words-1-1"):
        if THRIFT[method] in MAY[name]:
            Handler(cluster).check(method, (topology,), Who(name))
        else:
            with pytest.raises(ForbiddenError, match=method):
                Handler(cluster).check(method, (topology,), Who(name))
