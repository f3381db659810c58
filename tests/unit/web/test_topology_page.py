"""What the page of a topology says beside figures."""

from __future__ import annotations

import dataclasses

from page_client import Client
from sample_site import SampleSite, real_time

from storm_on_spark.api.info import RepetitionInfo
from storm_on_spark.web.access.gate import CodesOnly, Gate
from storm_on_spark.web.access.sessions import Sessions
from storm_on_spark.web.app import App
from storm_on_spark.web.pages.registry import TOPOLOGIES
from storm_on_spark.web.rendering import path


def test_how_many_rounds_have_been_executed_again_stands_beside_how_tuples_are_executed() -> None:
    view = real_time()
    assert view.info is not None
    pages = []
    for repetition in (None, RepetitionInfo(1500, 20000)):
        info = dataclasses.replace(view.info, mode="micro-batches", repetition=repetition)
        sessions = Sessions()
        site = SampleSite(dataclasses.replace(view, info=info))
        client = Client(App(site, Gate(sessions, CodesOnly(), 8080), TOPOLOGIES).asgi())
        client.get(f"/ui/login?code={sessions.new_code('reader', 'reader')}")
        pages.append(client.get(path("topology", view.id)).text)
    assert "<dd>micro-batches</dd>" in pages[0]
    told = "<small>1,500 of 20,000 rounds since the last checkpoint have been executed again</small>"
    assert f"<dd>micro-batches {told}</dd>" in pages[1]
