"""The pages of streams: who sees them and may change something, what they say, and that names stay text."""

from __future__ import annotations

import re

import pytest
from page_client import Client, Elements
from sample_jobs import JOBS
from sample_site import HARM
from sample_streams import DEPLOYED, FIRST, STREAMS, SampleStreams

from storm_on_spark.web.access.gate import CodesOnly, Gate
from storm_on_spark.web.access.sessions import Role, Sessions
from storm_on_spark.web.app import App
from storm_on_spark.web.pages.registry import STREAM_PAGES
from storm_on_spark.web.pages.registry import STREAMS as BOOK
from storm_on_spark.web.rendering import path
from storm_on_spark.web.sites.streams import STREAM_ACTIONS

ROLES: tuple[Role | None, ...] = (None, "reader", "operator")


class Served:
    """The sample behind a gate."""

    def __init__(self) -> None:
        self.sample = SampleStreams()
        self.sessions = Sessions()
        self.app = App(self.sample.site, Gate(self.sessions, CodesOnly(), 9393), BOOK).asgi()

    def client(self, role: Role | None) -> Client:
        client = Client(self.app)
        if role is not None:
            assert client.get(f"/ui/login?code={self.sessions.new_code(role, role)}").status_code == 303
        return client

    def form(self, client: Client, **more: str) -> dict[str, str]:
        found = re.search(r'name="csrf" value="([^"]+)"', client.get("/ui/").text)
        assert found is not None
        return {"csrf": found[1], **more}


@pytest.fixture
def served() -> Served:
    return Served()


def pages(name: str) -> list[str]:
    names = {"stream": name, "job": "poisoned", "execution": "8"}
    return [
        next((path(kind, each) for kind, each in names.items() if page.path == f"/{kind}/{{id}}"), f"/ui{page.path}")
        for page in STREAM_PAGES
    ]


@pytest.mark.parametrize("role", ROLES)
def test_every_page_is_for_readers_and_operators(served: Served, role: Role | None) -> None:
    client = served.client(role)
    for page in pages("orders"):
        answer = client.get(page)
        assert answer.status_code == (401 if role is None else 200), page
        assert "orders" not in answer.text or role is not None


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("action", STREAM_ACTIONS)
def test_actions_are_for_operators_and_confirmed(served: Served, role: Role | None, action: str) -> None:
    client = served.client(role)
    name = "idle" if action == "deploy" else "orders"
    to, form = path("stream", name, "act", action), {} if role is None else served.form(client)
    status = {None: 401, "reader": 403, "operator": 200}[role]
    assert client.post(to, data=form).status_code == status
    assert served.sample.done == [], "only after the confirmation"
    answer = client.post(to, data={**form, "sure": "yes"})
    assert answer.status_code == status
    assert client.get(to).status_code == 405
    assert [each[:2] for each in served.sample.done if each[0] == action] == [(action, name)] * (role == "operator")
    noted = [(each.who, each.what, each.name) for each in served.sample.changes.all()[:1]]
    assert (noted == [("operator", f"{action} stream", name)]) is (role == "operator")
    shown = {"idle": ("deploy", "destroy"), "whole": ("undeploy", "destroy"), "broken": ("undeploy", "destroy")}
    served.sample.deployed.pop("idle", None)
    for stream, possible in shown.items():
        offered = f"act/{action}" in served.client(role).get(path("stream", stream)).text
        assert offered is (role == "operator" and action in possible), stream


def test_a_form_of_another_session_changes_nothing(served: Served) -> None:
    client, other = served.client("operator"), served.client("operator")
    to = path("stream", "orders", "act", "destroy")
    for csrf in ("", "guess", served.form(other)["csrf"]):
        assert client.post(to, data={"csrf": csrf, "sure": "yes"}).status_code == 403
    form = served.form(client, sure="yes")
    assert client.post(to, data=form, headers={"Origin": "http://evil.example"}).status_code == 403
    assert served.sample.done == []


def test_a_stream_is_deployed_with_properties_as_the_form_has_them(served: Served) -> None:
    client = served.client("operator")
    to = path("stream", "idle", "act", "deploy")
    asked = client.post(to, data=served.form(client))
    assert "<textarea" in asked.text
    for wrong in ("nonsense", "=2", "a=1\r\na=2", "\n".join(f"module.m{at}.count=1" for at in range(1_001))):
        answer = client.post(to, data=served.form(client, sure="yes", properties=wrong))
        assert answer.status_code in (400, 413), wrong
    assert served.sample.done == []
    given = served.form(
        client, sure="yes", properties="module.log.count=2\r\n\r\nmodule.log.criteria=a=='b'", fused="yes"
    )
    assert client.post(to, data=given).status_code == 200
    properties = {"module.log.count": "2", "module.log.criteria": "a=='b'"}
    assert served.sample.done == [("deploy", "idle", properties, True)]
    assert served.sample.changes.all()[0].what == "deploy stream as one topology"
    assert "deploy stream as one topology" in client.get("/ui/changes").text
    again = client.post(to, data=given)
    assert (again.status_code, "already deployed" in again.text) == (409, True)


def test_without_a_leader_an_action_says_so_and_is_written_down(served: Served) -> None:
    client = served.client("operator")
    served.sample.leads = ""
    answer = client.post(path("stream", "idle", "act", "deploy"), data=served.form(client, sure="yes"))
    assert (answer.status_code, "No leader has taken up" in answer.text) == (503, True)
    assert served.sample.changes.all()[0].what == "deploy stream (its end was not seen)"
    assert "No admin leads" in client.get("/ui/").text


def test_what_is_known_is_shown_while_zookeeper_is_away(served: Served) -> None:
    client = served.client("reader")
    served.sample.connected = False
    for page in pages("orders"):
        answer = client.get(page)
        assert answer.status_code == 200
        assert "be reached since 2025-11-27" in answer.text or page.endswith("changes"), page


def test_states_rates_and_errors_are_shown(served: Served) -> None:
    client = served.client("reader")
    home = client.get("/ui/").text
    assert f"{len(DEPLOYED)} <small>of {len(STREAMS)}</small>" in home
    row = home[home.index(f'{path("stream", "orders")}"') :].partition("</tr>")[0]
    assert re.findall(r'class="n">([^<]+)<', row) == ["3 of 3", "1,234,567", "412"]
    broken = client.get(path("stream", "broken")).text
    assert "2 <small>of 3</small>" in broken
    assert "ScriptError: /jobs/shout.py" in broken
    whole = client.get(path("stream", "whole")).text
    assert "one topology <small>real time</small>" in whole
    tapped = client.get(path("stream", "orders")).text
    assert f'Tapped by</dt><dd><a href="{path("stream", "watch")}">' in tapped
    containers = client.get("/ui/containers").text
    assert f'id="{FIRST}"' in containers
    assert "180.0 MB" in containers


def test_secrets_are_hidden(served: Served) -> None:
    client = served.client("operator")
    for name in STREAMS:
        for page in pages(name):
            assert "hush" not in client.get(page).text, page


@pytest.mark.parametrize("name", list(STREAMS))
def test_names_definitions_and_errors_stay_text(served: Served, name: str) -> None:
    client = served.client("operator")
    asked = [path("stream", name, "act", action) for action in STREAM_ACTIONS]
    answers = [client.get(page) for page in [*pages(name), path("stream", name + HARM)]]
    answers += [client.post(to, data=served.form(client)) for to in asked]
    for answer in answers:
        assert answer.status_code in (200, 404)
        found = Elements(answer.text)
        assert found.bad == []
        assert len(found.scripts) == 1
        assert [link for link in found.links if not link.startswith(("/ui", "#"))] == []


def test_a_stream_that_is_not_there_is_not_there(served: Served) -> None:
    client = served.client("operator")
    for name in ("nothing", "../orders", "a/b", ""):
        assert client.get(path("stream", name)).status_code == 404
        form = served.form(client, sure="yes")
        assert client.post(path("stream", name, "act", "destroy"), data=form).status_code in (404, 405)
    assert client.post(path("stream", "orders", "act", "kill"), data=served.form(client)).status_code == 404
    assert served.sample.done == []


def test_no_actions_where_they_are_off(served: Served) -> None:
    served.sample.site.actions = ()
    client = served.client("operator")
    assert "act/destroy" not in client.get(path("stream", "orders")).text
    form = served.form(client, sure="yes")
    assert client.post(path("stream", "orders", "act", "destroy"), data=form).status_code == 404
    assert served.sample.done == []


JOB_ORDERS = (("job", "nightly", "launch"), ("job", "fresh", "deploy"), ("job", "nightly", "undeploy"))
JOB_ORDERS += (("job", "fresh", "destroy"), ("execution", "9", "stop"), ("execution", "8", "restart"))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("kind", "name", "action"), JOB_ORDERS)
def test_jobs_and_executions_are_changed_by_operators(
    served: Served, role: Role | None, kind: str, name: str, action: str
) -> None:
    client, jobs = served.client(role), served.sample.jobs
    status = {None: 401, "reader": 403, "operator": 200}[role]
    to, form = path(kind, name, "act", action), {} if role is None else served.form(client, properties="date=1")
    if role is not None:
        assert (f"act/{action}" in client.get(path(kind, name)).text) is (role == "operator")
    assert client.post(to, data=form).status_code == status
    assert jobs.done == [], "only after the confirmation"
    assert client.post(to, data={**form, "sure": "yes"}).status_code == status
    given = {"date": "1"} if action in ("launch", "deploy") else {}
    assert jobs.done[:1] == [(action, name, given)] * (role == "operator")
    noted = served.sample.changes.all()[0]
    what, of = (f"{action} job", name) if kind == "job" else (f"{action} execution {name} of job", noted.name)
    assert ((noted.who, noted.what, noted.name) == ("operator", what, of)) is (role == "operator")


def test_of_jobs_and_executions_only_what_is_possible_is_offered(served: Served) -> None:
    client = served.client("operator")
    for kind, name, possible in (
        ("job", "fresh", ["deploy", "destroy"]),
        ("job", "nightly", ["launch", "undeploy", "destroy"]),
        ("job", "endless", ["undeploy", "destroy"]),
        ("execution", "9", ["stop"]),
        ("execution", "8", ["restart"]),
        ("execution", "7", []),
        ("execution", "5", []),
        ("execution", "4", []),
    ):
        assert re.findall(r"/act/(\w+)", client.get(path(kind, name)).text) == possible, name
    # A page may be older than what it offers.
    form = served.form(client, sure="yes")
    assert client.post(path("execution", "7", "act", "stop"), data=form).status_code == 409
    assert client.post(path("job", "endless", "act", "launch"), data=form).status_code == 409
    assert client.post(path("execution", "77", "act", "stop"), data=form).status_code == 404
    assert client.post(path("job", "nothing", "act", "launch"), data=form).status_code == 404
    assert served.sample.jobs.done == []


def test_pages_of_jobs_stay_text_and_hide_secrets(served: Served) -> None:
    client = served.client("operator")
    where = ["/ui/jobs", *(path("job", name) for name in JOBS)]
    where += [path("execution", each) for each in ("4", "5", "7", "8", "9", HARM)]
    for page in where:
        answer = client.get(page)
        assert answer.status_code == (404 if page == path("execution", HARM) else 200), page
        found = Elements(answer.text)
        assert found.bad == []
        assert len(found.scripts) == 1
        assert [link for link in found.links if not link.startswith(("/ui", "#"))] == []
        assert "hush" not in answer.text
    assert "1 of 1" not in client.get("/ui/jobs").text
    steps = client.get(path("execution", "8")).text
    assert "goes on with" not in steps
    assert f'Goes on with</dt><dd><a href="{path("execution", "5")}">' in steps
