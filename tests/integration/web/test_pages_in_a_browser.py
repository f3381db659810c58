"""A headless Chromium opens every page, follows the graph, and acts; axe finds nothing, the console says nothing."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from looking import complaints, look_at_all, overflows
from sample_site import HARM, LONG, SampleSite, harmful, large, real_time, silent, single, word_count
from visiting import Served
from waiting import eventually

from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.web.access.gate import CodesOnly, Gate
from storm_on_spark.web.access.sessions import Sessions
from storm_on_spark.web.app import App
from storm_on_spark.web.pages.registry import TOPOLOGIES
from storm_on_spark.web.rendering import path

WORDS, LARGE, HARMFUL = word_count().id, large().id, harmful().id
PAGES = {
    "cluster": "/ui/",
    "supervisors": "/ui/supervisors",
    "configuration": "/ui/configuration",
    "changes": "/ui/changes",
    "logs": "/ui/logs",
    "topology": path("topology", WORDS),
    "component": path("topology", WORDS, "component", "count"),
    "task": path("topology", WORDS, "component", "count", "task", "4"),
    "errors": path("topology", WORDS, "errors"),
    "samples": path("topology", WORDS, "samples"),
    "way of a message": path("topology", WORDS, "tree", "1a"),
    "log": path("topology", WORDS, "logs") + "?log=word-count/6700/worker.log",
    "search": "/ui/logs?search=line+5",
    "sixty components": path("topology", LARGE),
    "one component": path("topology", single().id),
    "nothing known yet": path("topology", silent().id),
    "harmful names": path("topology", HARMFUL),
    "harmful component": path("topology", HARMFUL, "component", LONG),
    "harmful errors": path("topology", HARMFUL, "errors"),
    "harmful samples": path("topology", HARMFUL, "samples"),
    "harmful way": path("topology", HARMFUL, "tree", "1c"),
    "long way": path("topology", LARGE, "tree", "1d"),
    "real time": path("topology", real_time().id),
    "no samples": path("topology", single().id, "samples"),
    "harmful search": "/ui/logs?search=harmed",
}


SHOWN = ("cluster", "supervisors", "topology", "component", "task", "errors", "log", "search", "sixty components")
SHOWN += ("configuration", "changes", "nothing known yet", "harmful names", "samples", "way of a message", "real time")


# Pages of streams are looked at in both schemes each time, by the same rules.
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.soak)])
def test_every_page_is_fine_wide_and_narrow(served: Served, scheme: str) -> None:
    look_at_all(served, PAGES, SHOWN, scheme, {"real time": "#time-title"})


def test_the_log_in_page_is_fine_and_lets_nobody_in(served: Served) -> None:
    page = served.browser.new_context().new_page()
    answer = page.goto(f"{served.root}/ui/")
    assert answer.status == 401
    assert complaints(page) == []
    assert page.get_by_role("navigation").count() == 0
    page.context.close()


def test_a_stranger_finds_the_slow_bolt_by_the_graph(served: Served) -> None:
    visit = served.visit()
    page = visit.page
    visit.begin()
    visit.click(page.get_by_role("link", name="word-count", exact=True))
    visit.click(page.get_by_role("link", name="count: bolt, overloaded"))
    assert page.get_by_role("heading", level=1).inner_text() == "count"
    assert page.get_by_text("96 %").is_visible()
    visit.arrived("Which bolt is slow?")


def test_why_does_it_time_out(served: Served) -> None:
    visit = served.visit()
    page = visit.page
    view = served.site.views[WORDS]
    assert view.info is not None
    slow = {"p50": 12_000.0, "p95": 26_000.0, "p99": 29_500.0}
    info = dataclasses.replace(view.info, complete_latency_ms=slow)
    served.site.views[WORDS] = dataclasses.replace(view, info=info)
    visit.begin()
    visit.click(page.get_by_role("link", name="word-count", exact=True))
    warning = page.get_by_role("listitem").filter(has_text="time-outs")
    assert "30" in warning.inner_text()
    visit.click(page.get_by_role("link", name="Samples"))
    visit.click(page.get_by_role("link", name="'line-17'"))
    assert page.get_by_text("waiting for count").is_visible()
    visit.arrived("Why does it time out?")


def test_who_holds_the_code(served: Served) -> None:
    visit = served.visit()
    visit.begin()
    assert visit.page.get_by_text("lacks the code of word-count").is_visible()
    row = visit.page.get_by_role("row").filter(has=visit.page.get_by_role("link", name="word-count", exact=True))
    assert "2 of 2" in row.inner_text()
    visit.arrived("Who holds the code?")


def test_what_changed_in_the_last_hour(served: Served) -> None:
    visit = served.visit()
    visit.begin()
    visit.click(visit.page.get_by_role("link", name="Changes"))
    row = visit.page.get_by_role("row").filter(has_text="activate")
    assert "ada" in row.inner_text()
    visit.arrived("What changed in the last hour?")


def test_which_tuple_was_the_poison(served: Served) -> None:
    visit = served.visit()
    page = visit.page
    visit.begin()
    visit.click(page.get_by_role("link", name="word-count", exact=True))
    visit.click(page.get_by_role("navigation", name="Topology").get_by_role("link", name="Errors"))
    visit.click(page.get_by_role("link", name="Failed tuples of count").first)
    assert page.get_by_role("link", name="'line-17'").count() == 0, "only what failed"
    visit.click(page.get_by_role("link", name="'line-18'"))
    row = page.get_by_role("row").filter(has_text="raised")
    assert "('poison',)" in row.inner_text()
    assert page.locator("svg.way g").count() == 2
    visit.arrived("Which tuple was the poison?")


def test_where_the_milliseconds_go(served: Served) -> None:
    visit = served.visit()
    page = visit.page
    visit.begin()
    visit.click(page.get_by_role("link", name="word-count", exact=True))
    assert page.get_by_role("img", name="Time of the last micro-batches, in parts").locator("g").count() == 40
    assert "executes" in page.get_by_role("table", name="Median of the last 40 micro-batches").inner_text()
    visit.arrived("Where do the milliseconds go?")
    visit.to(path("topology", real_time().id))
    bars = page.get_by_role("img", name="Work in real time, second by second, in parts").locator("g")
    assert "bolts and ackers 230 ms" in bars.first.locator("title").text_content()
    rows = page.get_by_role("table", name="Rounds of the last 40 s").get_by_role("row")
    assert rows.filter(has_text="waits").inner_text().split() == ["waits", "500", "544"]


def test_tuples_are_sampled_by_the_page_and_followed(served: Served) -> None:
    visit = served.visit()
    page = visit.page
    visit.to(path("topology", WORDS, "samples"))
    assert page.get_by_text("Nothing is sampled at the moment").is_visible()
    page.get_by_label("Sample tuples of").select_option("count")
    page.get_by_label("Per cent, 0 is off").fill("5")
    page.get_by_role("button", name="Sample").click()
    assert page.get_by_text("5 % of the tuples of count").is_visible()
    page.get_by_role("button", name="Sample").click()
    assert served.site.rates == {"count": 5.0}
    visit.to(path("topology", WORDS, "samples"))
    assert page.get_by_text("Sampled now:").is_visible()
    new = served.site.events[0]._replace(roots=("77",), message_id="'a new line'")
    served.site.events.append(new)
    page.get_by_role("link", name="'a new line'").wait_for()


def test_a_log_level_is_changed_and_taken_back_beside_the_logs(served: Served) -> None:
    visit = served.visit()
    page = visit.page
    logs = path("topology", WORDS, "logs")
    for level, shown in (("DEBUG", True), ("as before", False)):
        visit.to(logs)
        page.get_by_label("Logger").fill("my.bolt")
        page.get_by_label("Level").select_option(level)
        page.get_by_label("For seconds, 0 is no limit").fill("60")
        page.get_by_role("button", name="Change log level").click()
        page.get_by_text(f"my.bolt: {level}").wait_for()
        assert complaints(page) == []
        assert ("my.bolt" in served.site.levels) is not shown, "only after the confirmation"
        page.get_by_role("button", name="Change", exact=True).click()
        page.get_by_role("heading", name="Done").wait_for()
        visit.to(logs)
        assert page.locator("b", has_text="my.bolt").count() == shown
    assert complaints(page) == []
    page.set_viewport_size({"width": 360, "height": 800})
    assert not overflows(page)


def test_the_graph_is_reached_by_keys(served: Served) -> None:
    visit = served.visit()
    visit.to(path("topology", WORDS))
    visit.page.locator("svg.graph a").last.focus()
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_url("**/component/store")


def test_what_changes_is_shown_without_loading_and_focus_stays(served: Served) -> None:
    visit = served.visit()
    visit.to(path("topology", WORDS))
    link = visit.page.locator("tbody a", has_text="count").first
    link.focus()
    view = served.site.views[WORDS]
    info = dataclasses.replace(view.info, acked=7_654_321) if view.info is not None else None
    served.site.views[WORDS] = dataclasses.replace(view, info=info, looked_at=view.looked_at + 10)
    visit.page.get_by_text("7,654,321").wait_for()
    assert visit.page.evaluate("document.activeElement.textContent") == "count"
    del served.site.views[WORDS]
    visit.page.get_by_text("What this page shows is no more.").wait_for()


def test_a_page_asks_while_its_server_is_away_and_gets_events_again_afterwards(browser: Any) -> None:
    site, sessions, listener = SampleSite(), Sessions(), listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    gate = Gate(sessions, CodesOnly(), port)
    visit = Served(site, sessions, f"http://127.0.0.1:{port}", browser)

    def show(acked: int) -> None:
        view = site.views[WORDS]
        assert view.info is not None
        info = dataclasses.replace(view.info, acked=acked)
        site.views[WORDS] = dataclasses.replace(view, info=info, looked_at=view.looked_at + 10)

    app = App(site, gate, TOPOLOGIES, live_secs=0.1)
    with HttpServer(app.asgi(), listener):
        page = visit.visit().page
        page.clock.install(time=0)
        page.goto(visit.root + path("topology", WORDS))
        page.clock.pause_at(3_600_000)
        app.close()
    eventually(lambda: page.clock.run_for(1_000) or page.get_by_text("The server does not answer").is_visible())
    app = App(site, gate, TOPOLOGIES, live_secs=0.1)
    with HttpServer(app.asgi(), listen("127.0.0.1", port)):
        show(7_654_321)
        eventually(lambda: page.clock.run_for(5_000) or page.get_by_text("7,654,321").is_visible())
        assert page.locator("#state").inner_text() == ""
        # No timer runs: what comes now comes by itself.
        show(8_765_432)
        page.get_by_text("8,765,432").wait_for()
        page.context.close()
        app.close()


def test_an_action_is_confirmed_and_then_in_the_list_of_changes(served: Served) -> None:
    visit = served.visit()
    for action in ("Activate", "Deactivate", "Rebalance", "Kill"):
        before = list(served.site.done)
        view, status = served.site.views[WORDS], "INACTIVE" if action == "Activate" else "ACTIVE"
        served.site.views[WORDS] = dataclasses.replace(view, status=status)
        visit.to(path("topology", WORDS))
        assert visit.page.get_by_role("button", name=re.compile("activate", re.IGNORECASE)).count() == 1
        visit.page.get_by_role("button", name=action, exact=True).click()
        assert served.site.done == before
        visit.page.get_by_role("button", name=action, exact=True).click()
        visit.page.get_by_role("heading", name="Done").wait_for()
        assert served.site.done == [*before, (WORDS, action.lower(), "", "operator")]
        visit.to("/ui/changes")
        assert visit.page.get_by_role("cell", name=action.lower(), exact=True).first.is_visible()


def test_what_is_asked_before_an_action_is_fine(served: Served) -> None:
    visit = served.visit()
    visit.to(path("topology", WORDS))
    visit.page.get_by_role("button", name="Kill", exact=True).click()
    visit.page.locator("section.login h1").wait_for()
    assert complaints(visit.page) == []


def test_a_reader_sees_no_actions(served: Served) -> None:
    visit = served.visit("reader")
    visit.to(path("topology", WORDS))
    assert visit.page.get_by_role("button", name="Kill").count() == 0


def test_without_javascript_every_page_can_be_read(served: Served) -> None:
    visit = served.visit(java_script_enabled=False)
    visit.to(path("topology", WORDS))
    assert visit.page.locator("svg.graph a").count() == 4
    assert visit.page.locator("noscript a").is_visible()
    visit.page.get_by_role("button", name="Kill").click()
    visit.page.get_by_role("button", name="Kill").click()
    assert served.site.done[0][1] == "kill"


def test_a_log_is_searched_and_followed(served: Served) -> None:
    visit = served.visit()
    visit.to(path("topology", WORDS, "logs"))
    visit.page.get_by_label("Search all logs here").fill(HARM)
    visit.page.get_by_role("button", name="Search").click()
    visit.page.locator(".hit a").first.click()
    visit.page.get_by_role("link", name="Follow the end").click()
    served.site.log += "a new last line\n"
    visit.page.get_by_text("a new last line").wait_for()
