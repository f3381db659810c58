"""Who may see a page and who may change something; and that no name, error or log line becomes part of a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest
from page_client import HOST, Client, Elements
from sample_site import HARM, LONG, SampleSite, harmful, word_count

from storm_on_spark.web.access.gate import CodesOnly, Gate
from storm_on_spark.web.access.sessions import Role, Sessions
from storm_on_spark.web.app import App
from storm_on_spark.web.pages.registry import PAGES, TOPOLOGIES
from storm_on_spark.web.rendering import path

ROLES: tuple[Role | None, ...] = (None, "reader", "operator")


class Served:
    """The sample behind a gate, and what a browser would do."""

    def __init__(self) -> None:
        self.site = SampleSite()
        self.sessions = Sessions()
        gate = Gate(self.sessions, CodesOnly(), 8080)
        self.app = App(self.site, gate, TOPOLOGIES).asgi()

    def client(self, role: Role | None) -> Client:
        client = Client(self.app)
        if role is not None:
            answer = client.get(f"/ui/login?code={self.sessions.new_code(role, role)}")
            assert answer.status_code == 303
        return client

    def csrf(self, client: Client) -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', client.get("/ui/").text)
        assert found is not None
        return found[1]


@pytest.fixture
def served() -> Served:
    return Served()


def pages_of(view_id: str, component: str, task: str, root: str = "1a") -> list[str]:
    names = {"id": view_id, "component": component, "task": task, "root": root}
    parts = [page.path.strip("/").split("/") for page in PAGES]
    return [
        path(*(names[part[1:-1]] if part.startswith("{") else part for part in each)) if each != [""] else "/ui/"
        for each in parts
    ]


@pytest.mark.parametrize("role", ROLES)
def test_every_page_is_for_readers_and_operators(served: Served, role: Role | None) -> None:
    client = served.client(role)
    for page in pages_of(word_count().id, "count", "4"):
        answer = client.get(page)
        assert answer.status_code == (401 if role is None else 200), page
        stream = client.get(page, headers={"Accept": "text/event-stream"}) if role is None else answer
        assert stream.status_code == answer.status_code
        assert "word-count" not in answer.text or role is not None


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("action", SampleSite.actions)
def test_actions_are_for_operators(served: Served, role: Role | None, action: str) -> None:
    client = served.client(role)
    csrf = served.csrf(client) if role is not None else ""
    to, form = (
        path("topology", word_count().id, "act", action),
        {"csrf": csrf, "sure": "yes", "wait": "5", "percent": "5", "logger": "a", "level": "WARN"},
    )
    answer = client.post(to, data=form)
    assert answer.status_code == {None: 401, "reader": 403, "operator": 200}[role]
    assert client.get(to).status_code == 405
    done = [(word_count().id, action, "5", "operator")] if role == "operator" else []
    assert served.site.done == done
    assert ("act/kill" in client.get(path("topology", word_count().id)).text) is (role == "operator")


def test_an_action_is_confirmed_first(served: Served) -> None:
    client = served.client("operator")
    to = path("topology", word_count().id, "act", "kill")
    answer = client.post(to, data={"csrf": served.csrf(client)})
    assert answer.status_code == 200
    assert 'name="sure" value="yes"' in answer.text
    assert served.site.done == []


def test_a_log_level_is_asked_for_and_confirmed_before_it_changes(served: Served) -> None:
    client = served.client("operator")
    logs, to = (path("topology", word_count().id, *parts) for parts in (("logs",), ("act", "log-level")))
    assert 'action="' + to in client.get(logs).text
    assert to not in served.client("reader").get(logs).text
    form = {"csrf": served.csrf(client), "logger": HARM, "level": "TRACE", "secs": "30"}
    asked = client.post(to, data=form)
    assert "<script>window" not in asked.text
    assert served.site.done == []
    assert client.post(to, data={**form, "sure": "yes"}).status_code == 200
    assert served.site.levels[HARM].level == "TRACE"
    page = client.get(logs)
    assert "TRACE until" in page.text
    assert "<script>window" not in page.text
    for wrong in ({"level": "LOUD"}, {"secs": "-1"}, {"secs": "9" * 9}, {"secs": "\u0663"}, {"logger": "a" * 201}):
        assert client.post(to, data={**form, "sure": "yes", **wrong}).status_code == 400, wrong
    assert client.post(to, data={**form, "level": "as before", "sure": "yes"}).status_code == 200
    assert served.site.levels == {}


def test_a_form_without_its_sessions_token_changes_nothing(served: Served) -> None:
    client, other = served.client("operator"), served.client("operator")
    to = path("topology", word_count().id, "act", "kill")
    for csrf in ("", "guess", served.csrf(other)):
        assert client.post(to, data={"csrf": csrf, "sure": "yes"}).status_code == 403
    json = client.post(to, json={"csrf": served.csrf(client), "sure": "yes"})
    assert json.status_code == 403
    assert client.post("/ui/logout", data={"csrf": "guess"}).status_code == 403
    assert client.post("/ui/link", data={"csrf": "guess"}).status_code == 403
    assert served.site.done == []


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": f"{HOST}0"}, {"Sec-Fetch-Site": "cross-site"}],
)
def test_a_form_of_another_sites_page_changes_nothing(served: Served, headers: dict[str, str]) -> None:
    client = served.client("operator")
    form = {"csrf": served.csrf(client), "sure": "yes"}
    to = path("topology", word_count().id, "act", "kill")
    assert client.post(to, data=form, headers=headers).status_code == 403
    assert served.site.done == []
    assert client.post(to, data=form, headers={"Origin": HOST, "Sec-Fetch-Site": "same-origin"}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "10.0.0.1:8080", "127.0.0.1.evil.example", ""])
def test_a_name_of_another_host_is_refused(served: Served, host: str) -> None:
    assert served.client("operator").get("/ui/", headers={"Host": host}).status_code == 403


def test_a_code_leaves_the_address_and_counts_once(served: Served) -> None:
    code = served.sessions.new_code("operator", "ada")
    client = Client(served.app)
    answer = client.get(f"/ui/login?code={code}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    # The browser that used it may follow the link again; another may not.
    assert client.get(f"/ui/login?code={code}").status_code == 303
    assert Client(served.app).get(f"/ui/login?code={code}").status_code == 403


def test_a_link_that_is_too_old_and_a_cookie_of_another_server_let_nobody_in(served: Served) -> None:
    late = served.sessions.new_code("operator", "ada", secs=-1.0)
    answer = Client(served.app).get(f"/ui/login?code={late}")
    assert (answer.status_code, "too old: ask for a new one" in answer.text) == (403, True)
    client = Client(served.app)
    other = Sessions().begin("operator", "eve")
    for name in ("storm-spark-8080", "storm-spark-8081"):
        client.cookies.set(name, other)
        assert client.get("/ui/").status_code == 401
        assert client.post(path("topology", word_count().id, "act", "kill"), data={"sure": "yes"}).status_code == 401
    assert served.site.done == []


def test_two_operators_at_once_are_both_done_and_both_noted(served: Served) -> None:
    both, to = [served.client("operator") for _ in range(2)], path("topology", word_count().id, "act", "rebalance")

    def act(client: Client) -> int:
        return client.post(to, data={"csrf": served.csrf(client), "sure": "yes"}).status_code

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(act, both))
    assert answers == [200, 200]
    assert [each[1] for each in served.site.done] == ["rebalance", "rebalance"]


def test_a_reader_makes_links_for_readers_only(served: Served) -> None:
    client = served.client("reader")
    answer = client.post("/ui/link", data={"csrf": served.csrf(client), "role": "operator"})
    code = re.search(r"code=([\w-]+)", answer.text)
    assert code is not None
    other = Client(served.app)
    assert other.get(f"/ui/login?code={code[1]}").status_code == 303
    assert "(reader)" in other.get("/ui/").text


def test_who_logs_out_is_out(served: Served) -> None:
    client = served.client("operator")
    cookies = dict(client.cookies)
    assert client.post("/ui/logout", data={"csrf": served.csrf(client)}).status_code == 303
    client.cookies.update(cookies)
    assert client.get("/ui/").status_code == 401


def harmful_pages() -> Iterator[str]:
    view = harmful()
    for component, task in ((HARM, "1"), (LONG, "3"), ("javascript:alert(1)", "5")):
        yield from pages_of(view.id, component, task, "1c")
        yield path("topology", view.id, "samples") + "?" + urlencode({"component": component, "bad": "1"})
    yield path("topology", view.id, "tree", HARM)
    yield "/ui/logs?" + urlencode({"search": HARM})
    yield "/ui/logs?" + urlencode({"search": "harmed"})
    yield path("topology", word_count().id, "logs") + "?" + urlencode({"log": "word-count/6700/worker.log"})
    yield path("topology", HARM)
    yield path("topology", view.id, "component", HARM + "x")
    yield "/ui/logs?" + urlencode({"log": HARM})
    yield f"/ui/{HARM}"


def test_names_errors_and_logs_stay_text(served: Served) -> None:
    client = served.client("operator")
    for page in harmful_pages():
        answer = client.get(page)
        assert answer.status_code in (200, 404), page
        found = Elements(answer.text)
        assert found.bad == [], page
        assert [str(script).partition("?")[0] for script in found.scripts] == ["/ui/static/ui.js"], page
        assert [link for link in found.links if not link.startswith(("/ui", "#"))] == [], page
        # Characters that change the direction of text are shown as escapes.
        assert "\u202e" not in answer.text


def test_what_an_action_is_told_stays_text(served: Served) -> None:
    client = served.client("operator")
    csrf = served.csrf(client)
    to = path("topology", harmful().id, "act", "kill")
    for form in ({"csrf": csrf}, {"csrf": csrf, "sure": "yes", "wait": HARM}):
        answer = client.post(to, data=form)
        assert Elements(answer.text).bad == []
        assert len(Elements(answer.text).scripts) == 1


def test_what_is_sampled_is_asked_and_stays_text(served: Served) -> None:
    client = served.client("operator")
    csrf = served.csrf(client)
    to = path("topology", word_count().id, "act", "sample")
    asked = client.post(to, data={"csrf": csrf, "component": HARM, "percent": "12.5"})
    assert Elements(asked.text).bad == []
    assert 'name="percent" value="12.5"' in asked.text
    assert served.site.done == []
    for percent in ("", "-1", "101", "nan", "1e999", HARM):
        answer = client.post(to, data={"csrf": csrf, "sure": "yes", "component": "count", "percent": percent})
        assert answer.status_code == 400, percent
        assert Elements(answer.text).bad == []
    assert client.post(to, data={"csrf": csrf, "sure": "yes", "percent": "12.5"}).status_code == 200
    assert "12.5 %" in client.get(path("topology", word_count().id, "samples")).text


def test_a_message_without_samples_is_not_there(served: Served) -> None:
    answer = served.client("reader").get(path("topology", word_count().id, "tree", "ffff"))
    assert answer.status_code == 404
    assert "there is no sample" in answer.text


def test_every_answer_has_the_headers_that_protect_it(served: Served) -> None:
    client = served.client("operator")
    nobody = Client(served.app)
    answers = [
        client.get("/ui/"),
        client.get("/ui/nothing"),
        client.get(path("topology", "nothing")),
        client.get("/ui/static/ui.css"),
        nobody.get("/ui/"),
        nobody.get("/ui/", headers={"Host": "evil.example"}),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "cache-control" in answer.headers


@pytest.mark.parametrize("log", ["../../etc/passwd", "/etc/passwd", "word-count/../../x/worker.log", "\0", "spark.log"])
def test_no_path_leads_out_of_the_logs(served: Served, log: str) -> None:
    answer = served.client("operator").get("/ui/logs?" + urlencode({"log": log}))
    assert answer.status_code == 404
    assert "root:" not in answer.text


@pytest.mark.parametrize("name", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "ui.css/../../app.py", "base.html"])
def test_no_path_leads_out_of_the_files_of_the_pages(served: Served, name: str) -> None:
    answer = served.client("operator").get(f"/ui/static/{name}")
    assert answer.status_code == 404


def test_a_form_is_bounded(served: Served) -> None:
    client = served.client("operator")
    to = path("topology", word_count().id, "act", "kill")
    assert client.post(to, data={"csrf": served.csrf(client), "x": "x" * 20_000}).status_code == 413
    many = {f"field{at}": "" for at in range(60)}
    assert client.post(to, data={"csrf": served.csrf(client), **many}).status_code == 413
