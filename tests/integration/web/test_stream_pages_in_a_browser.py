"""A headless Chromium opens every page of streams, deploys, undeploys and destroys; axe finds nothing."""

from __future__ import annotations

import msgspec
import pytest
from looking import complaints, look_at_all, overflows
from sample_streams import FIRST, HARM, LONG_NAME
from visiting import ServedStreams

from storm_on_spark.web.rendering import path

PAGES = {
    "streams": "/ui/",
    "stream": path("stream", "orders"),
    "stream that failed": path("stream", "broken"),
    "containers": "/ui/containers",
    "stream changes": "/ui/changes",
    "one topology": path("stream", "whole"),
    "tap": path("stream", "watch"),
    "undeployed": path("stream", "idle"),
    "sixty modules": path("stream", "sixty"),
    "long stream": path("stream", LONG_NAME),
    "harmful stream": path("stream", HARM),
    "jobs": "/ui/jobs",
    "job": path("job", "poisoned"),
    "execution": path("execution", "8"),
    "job that was never launched": path("job", "fresh"),
    "execution of a job that is gone": path("execution", "4"),
    "harmful job": path("job", HARM),
}
SHOWN = ("streams", "stream", "stream that failed", "containers", "jobs", "execution")


# Between them, the pages that docs show have all colours.
@pytest.mark.parametrize(
    ("scheme", "name"),
    [("light", name) for name in PAGES]
    + [pytest.param("dark", name, marks=() if name in SHOWN else pytest.mark.soak) for name in PAGES],
)
def test_every_page_of_streams_is_fine_wide_and_narrow(streams: ServedStreams, scheme: str, name: str) -> None:
    look_at_all(streams, {name: PAGES[name]}, SHOWN, scheme)


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.soak)])
def test_nothing_to_show_is_fine(streams: ServedStreams, scheme: str) -> None:
    sample = streams.site
    sample.texts, sample.deployed, sample.full, sample.leads = {}, {}, [], ""
    sample.connected = False
    sample.changes.found = []
    sample.jobs.texts, sample.jobs.deployed, sample.jobs.kept = {}, {}, []
    look_at_all(streams, {name: where for name, where in PAGES.items() if where.count("/") < 3}, (), scheme)


def test_a_stranger_finds_why_a_stream_failed(streams: ServedStreams) -> None:
    visit = streams.visit("reader")
    page = visit.page
    visit.begin()
    assert "2 of 3" in page.get_by_role("row").filter(has=page.get_by_role("link", name="broken")).inner_text()
    visit.click(page.get_by_role("link", name="broken", exact=True))
    assert page.get_by_text("ScriptError: /jobs/shout.py").is_visible()
    visit.arrived("Why did a stream fail?")
    visit.click(page.get_by_role("link", name="2ebbbc9b").first)
    page.wait_for_url(f"**/containers#{FIRST}")
    assert page.locator(f"[id='{FIRST}'] h2").inner_text().startswith("host-1")
    visit.arrived("In which container did it run?")


@pytest.mark.parametrize("javascript", [True, False])
def test_a_stream_is_deployed_undeployed_and_destroyed(streams: ServedStreams, javascript: bool) -> None:
    visit = streams.visit(java_script_enabled=javascript)
    page = visit.page
    for action in ("Deploy", "Undeploy", "Destroy"):
        visit.to(path("stream", "idle"))
        page.get_by_role("button", name=action, exact=True).click()
        assert [each[0] for each in streams.site.done if each[0] == action.lower()] == []
        if javascript:
            assert complaints(page) == []
            page.set_viewport_size({"width": 360, "height": 800})
            assert not overflows(page)
            page.set_viewport_size({"width": 1280, "height": 800})
        if action == "Deploy":
            page.get_by_label("Properties, one a line").fill(
                "module.log.count=2\nmodule.log.criteria=groups.contains('io')"
            )
        page.get_by_role("button", name=action, exact=True).click()
        page.get_by_role("heading", name="Done").wait_for()
        page.get_by_role("link", name="To the first page" if action == "Destroy" else "Back to idle").click()
    properties = {"module.log.count": "2", "module.log.criteria": "groups.contains('io')"}
    assert streams.site.done[0] == ("deploy", "idle", properties, False)
    assert page.get_by_role("link", name="idle", exact=True).count() == 0
    page.get_by_role("link", name="Changes").click()
    assert "operator" in page.get_by_role("row").filter(has_text="destroy stream").inner_text()


def test_a_job_is_launched_its_execution_stopped_and_restarted(streams: ServedStreams) -> None:
    visit = streams.visit()
    page, jobs = visit.page, streams.site.jobs
    visit.to(path("job", "nightly"))
    for action, back in (("Launch", "Back to nightly"), ("Stop", "Back to execution 10"), ("Restart", "")):
        before = list(jobs.done)
        page.get_by_role("button", name=action, exact=True).click()
        page.locator("section.login h1").wait_for()
        assert jobs.done == before
        assert complaints(page) == []
        page.set_viewport_size({"width": 360, "height": 800})
        assert not overflows(page)
        page.set_viewport_size({"width": 1280, "height": 800})
        if action == "Launch":
            page.get_by_label("Parameters, one a line").fill("date=2026-11-27")
        page.get_by_role("button", name=action, exact=True).click()
        page.get_by_role("heading", name="Done").wait_for()
        if back:
            page.get_by_role("link", name=back).click()
        if action == "Launch":
            page.get_by_role("link", name="10", exact=True).click()
    assert jobs.done == [
        ("launch", "nightly", {"date": "2026-11-27"}),
        ("stop", "10", {}),
        ("restart", "10", {}),
        ("launch", "nightly", {}),
    ]
    page.get_by_role("link", name="Changes").click()
    assert "nightly" in page.get_by_role("row").filter(has_text="restart execution 10 of job").inner_text()


def test_a_reader_sees_no_actions_on_streams(streams: ServedStreams) -> None:
    visit = streams.visit("reader")
    visit.to(path("stream", "orders"))
    assert visit.page.get_by_role("button", name="Destroy").count() == 0


def test_a_rate_that_changes_is_shown_without_loading(streams: ServedStreams) -> None:
    visit = streams.visit()
    visit.to(path("stream", "orders"))
    first = streams.site.full[0]
    told = {
        **first.metrics.rates,
        "orders.sink.jdbc.1": msgspec.structs.replace(first.metrics.rates["orders.sink.jdbc.1"], input=777_777.0),
    }
    metrics = msgspec.structs.replace(first.metrics, rates=told)
    streams.site.full[0] = msgspec.structs.replace(first, metrics=metrics)
    visit.page.get_by_role("cell", name="777,777").wait_for()
    del streams.site.texts["orders"]
    visit.page.get_by_text("What this page shows is no more.").wait_for()
