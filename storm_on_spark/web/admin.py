"""The pages of streams, on the port of each admin."""

from __future__ import annotations

from starlette.types import ASGIApp

from storm_on_spark.web.access.gate import Gate
from storm_on_spark.web.access.sessions import Sessions
from storm_on_spark.web.app import App
from storm_on_spark.web.daemon import DaemonLogin, DaemonPages
from storm_on_spark.web.pages.registry import STREAMS
from storm_on_spark.web.settings import UiSettings
from storm_on_spark.web.sites.streams import STREAM_ACTIONS, StreamsSite
from storm_on_spark.xd.admin.daemon import Offered


class StreamPages(DaemonPages):
    """Adds the pages to the REST interface of an admin.

    Args:
        rest: that interface.
        offered: what the admin offers.
    """

    def __init__(self, rest: ASGIApp, offered: Offered) -> None:
        sessions, login = Sessions(), DaemonLogin(offered.authentication)
        gate = Gate(sessions, login, offered.port, secure=offered.secure, local=offered.local)
        actions = STREAM_ACTIONS if UiSettings.of(offered.conf).actions_enabled else ()
        site = StreamsSite(offered.parts, offered.picture, offered.address, offered.connected, actions)
        super().__init__(rest, App(site, gate, STREAMS), sessions, offered.authentication, "/ui-login")
