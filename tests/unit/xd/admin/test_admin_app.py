"""The REST interface of an admin: what each resource does, and what it refuses."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lengths import examples

from storm_on_spark.cluster.client.paths import path_part
from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.cluster.http.messages import MAX_BODY
from storm_on_spark.xd.admin.rest.resources import RESOURCES
from storm_on_spark.xd.dsl import MAXIMUM_LENGTH, parse_stream
from tests.unit.xd.rest_server import CONTAINER, Admin

TICKTOCK = {"name": "ticktock", "definition": "time | log"}


@pytest.fixture
def admin() -> Admin:
    return Admin()


def test_the_life_of_a_stream(admin: Admin) -> None:
    view = {**TICKTOCK, "status": "undeployed"}
    assert admin.ask("POST", "/streams/definitions", TICKTOCK) == (201, view)
    assert admin.ask("GET", "/streams/definitions/ticktock") == (200, view)
    status, deployment = admin.ask("POST", "/streams/deployments/ticktock", {"properties": {"module.log.count": "1"}})
    assert (status, deployment["state"]) == (201, "deployed")
    assert admin.ask("GET", "/streams/deployments/ticktock") == (200, deployment)
    assert admin.ask("GET", "/streams/definitions/ticktock") == (200, {**TICKTOCK, "status": "deployed"})
    assert admin.ask("DELETE", "/streams/deployments/ticktock") == (204, None)
    assert admin.ask("GET", "/streams/deployments/ticktock")[1]["state"] == "undeployed"
    assert admin.ask("DELETE", "/streams/definitions/ticktock") == (204, None)
    assert admin.ask("GET", "/streams/definitions")[1]["content"] == []


def test_a_deployment_without_a_body_has_no_properties(admin: Admin) -> None:
    admin.ask("POST", "/streams/definitions", TICKTOCK)
    assert admin.ask("POST", "/streams/deployments/ticktock")[1]["properties"] == {}


def test_a_stream_is_created_and_deployed_at_once(admin: Admin) -> None:
    assert admin.ask("POST", "/streams/definitions", {**TICKTOCK, "deploy": True})[1]["status"] == "deployed"


def test_a_stream_stays_if_it_cannot_be_deployed_now(admin: Admin) -> None:
    admin.runtime.refusal = UnavailableError("there is no leader")
    status, _, sentence = admin.told("POST", "/streams/definitions", {**TICKTOCK, "deploy": True})
    assert (status, sentence) == (503, "Stream 'ticktock' was created, but is not deployed: there is no leader")
    assert admin.definitions.texts == {"ticktock": "time | log"}


def test_a_stream_is_undeployed_before_it_is_destroyed(admin: Admin) -> None:
    admin.ask("POST", "/streams/definitions", {**TICKTOCK, "deploy": True})
    assert admin.ask("DELETE", "/streams/definitions/ticktock") == (204, None)
    assert (admin.definitions.texts, admin.runtime.deployed) == ({}, {})


def test_all_at_once(admin: Admin) -> None:
    for name in ("a", "b", "c"):
        admin.ask("POST", "/streams/definitions", {"name": name, "definition": "time | log", "deploy": name != "c"})
    assert [each["name"] for each in admin.ask("GET", "/streams/deployments")[1]["content"]] == ["a", "b"]
    assert admin.ask("DELETE", "/streams/deployments") == (204, None)
    assert admin.runtime.deployed == {}
    assert admin.ask("DELETE", "/streams/definitions") == (204, None)
    assert admin.definitions.texts == {}


def test_what_changes_something_is_written_down_and_nothing_else(admin: Admin) -> None:
    admin.send(
        "POST", "/streams/definitions", json={**TICKTOCK, "deploy": True}, headers={"Storm-On-Behalf-Of": "ann%20b"}
    )
    admin.ask("POST", "/validate", {"definition": "time | log"})
    admin.ask("GET", "/streams/definitions")
    admin.ask("POST", "/streams/deployments/ticktock")  # it is deployed already
    admin.ask("DELETE", "/streams/deployments/ticktock")
    admin.runtime.refusal = UnavailableError("no leader")
    assert admin.ask("POST", "/streams/deployments/ticktock")[0] == 503
    admin.ask("DELETE", "/streams/definitions")
    admin.ask("POST", "/jobs/definitions", {"name": "nightly", "definition": "timestampfile", "deploy": True})
    launched = admin.ask("POST", "/jobs/executions", {"name": "nightly"})[1]["executionId"]
    admin.ask("PUT", f"/jobs/executions/{launched}?stop=true")
    assert [(each.what, each.name) for each in admin.changes.noted] == [
        ("create stream and deploy it", "ticktock"),
        ("undeploy stream", "ticktock"),
        ("deploy stream (its end was not seen)", "ticktock"),
        ("destroy streams", ""),
        ("create job and deploy it", "nightly"),
        ("launch job", "nightly"),
        ("stop execution", str(launched)),
    ]
    assert [each.who for each in admin.changes.noted[:2]] == ["ann b", ""]


def test_lists_have_pages(admin: Admin) -> None:
    for number in range(5):
        admin.definitions.texts[f"s{number}"] = "time | log"
    status, found = admin.ask("GET", "/streams/definitions?page=1&size=2")
    assert (status, [each["name"] for each in found["content"]]) == (200, ["s2", "s3"])
    assert found["page"] == {"size": 2, "totalElements": 5, "totalPages": 3, "number": 1}


def test_modules_and_their_options(admin: Admin) -> None:
    found = admin.ask("GET", "/modules?type=sink&size=100")[1]["content"]
    assert {each["type"] for each in found} == {"sink"}
    status, time = admin.ask("GET", "/modules/source/time")
    assert status == 200
    assert time["options"][0]["name"] == "fixedDelay"
    assert time["options"][0]["defaultValue"] == "1"


def test_containers_and_what_runs_in_them(admin: Admin) -> None:
    admin.ask("POST", "/streams/definitions", {**TICKTOCK, "deploy": True})
    assert admin.ask("GET", "/runtime/containers")[1]["content"][0]["containerId"] == CONTAINER
    here = admin.ask("GET", f"/runtime/modules?containerId={CONTAINER}")[1]["content"]
    assert [each["name"] for each in here] == ["ticktock.sink.log.1", "ticktock.source.time.1"]
    assert admin.ask("GET", "/runtime/modules?containerId=another")[1]["content"] == []
    for module in ("ticktock.sink.log.1", "ticktock.sink.log"):
        [one] = admin.ask("GET", f"/runtime/modules?moduleId={module}")[1]["content"]
        assert one["name"] == "ticktock.sink.log.1"


def test_the_description_has_every_resource(admin: Admin) -> None:
    status, found = admin.ask("GET", "/openapi.json")
    assert status == 200
    described = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert described == {(each.method, each.path) for each in RESOURCES}
    references = set(_references(found["paths"]))
    assert references == {f"#/components/schemas/{name}" for name in references_of(references)}
    assert references_of(references) <= found["components"]["schemas"].keys()


def references_of(found: set[str]) -> set[str]:
    return {each.rpartition("/")[2] for each in found}


def _references(node: Any) -> Any:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for each in node.values():
            yield from _references(each)


def test_the_life_of_a_job(admin: Admin) -> None:
    job = {"name": "nightly", "definition": "a:timestampfile || <b:timestampfile & c:timestampfile>"}
    assert admin.ask("POST", "/jobs/definitions", job) == (201, {**job, "status": "undeployed"})
    assert admin.told("POST", "/jobs/executions", {"name": "nightly"})[0] == 409
    assert admin.ask("POST", "/jobs/deployments/nightly")[1]["state"] == "deployed"
    status, execution = admin.ask("POST", "/jobs/executions", {"name": "nightly", "parameters": {"day": "1"}})
    assert (status, execution["status"], execution["parameters"]) == (201, "STARTED", {"day": "1"})
    assert admin.ask("GET", "/jobs/executions/1") == (200, execution)
    assert admin.ask("PUT", "/jobs/executions/1?stop=true")[1]["status"] == "STOPPED"
    assert admin.ask("PUT", "/jobs/executions/1?restart=true")[1]["executionId"] == 2
    listed = admin.ask("GET", "/jobs/executions?jobname=nightly")[1]["content"]
    assert [each["executionId"] for each in listed] == [2, 1]
    assert admin.ask("GET", "/jobs/executions?jobname=other")[1]["content"] == []
    assert admin.ask("DELETE", "/jobs/definitions/nightly") == (204, None)
    assert (admin.jobs.texts, admin.job_runtime.deployed, admin.definitions.texts) == ({}, {}, {})


CREATE = ("POST", "/streams/definitions")
JOB = ("POST", "/jobs/definitions")
LAUNCH = ("POST", "/jobs/executions")


@pytest.mark.parametrize(
    ("request_", "body", "status", "part"),
    [
        (CREATE, None, 400, "needs a body"),
        (CREATE, {"name": "a b", "definition": "time | log"}, 400, "$.name"),
        (CREATE, {"name": "../x", "definition": "time | log"}, 400, "$.name"),
        (CREATE, {"name": "a" * 256, "definition": "time | log"}, 400, "$.name"),
        (CREATE, {"name": "x", "definition": ""}, 400, "$.definition"),
        (CREATE, {"name": "x", "definition": "a" * (MAXIMUM_LENGTH + 1)}, 400, "$.definition"),
        (CREATE, {"name": "x", "definition": "time |"}, 400, "XD103E"),
        (CREATE, {"name": "x", "definition": "tim | log"}, 400, "Did you mean time?"),
        (CREATE, {"name": "x", "definition": "time --fixedDelay=soon | log"}, 400, "XD114E: (pos 18)"),
        (CREATE, {"name": "x", "definition": "time --tempo=1 | log"}, 400, "XD113E"),
        (CREATE, {"name": "x", "definition": "time"}, 400, "XD116E"),
        (CREATE, {"name": "x", "definition": "time | __log:log"}, 400, "XD111E"),
        (CREATE, {"name": "x", "definition": "other = time | log"}, 400, "XD111E"),
        (CREATE, {"name": "log", "definition": "time | log"}, 400, "XD110E"),
        (CREATE, {"name": "x", "definition": "tap:stream:none > log"}, 400, "XD118E: (pos 11)"),
        (CREATE, {"name": "x", "definition": "tap:stream:there.filter > log"}, 400, "one of time, log"),
        (CREATE, {"name": "x", "definition": "tap:job:there > log"}, 400, "jobs have none"),
        (CREATE, {"name": "x", "definition": "trigger > queue:job:nightly"}, 400, "run `job launch nightly`"),
        (CREATE, {"name": "x", "definition": "topic:a:b > log"}, 400, "XD106E: (pos 6)"),
        (CREATE, {"name": "there", "definition": "time | log"}, 409, "already a stream named 'there'"),
        (CREATE, {"name": "x", "definition": "time | log", "more": 1}, 400, "more"),
        (("POST", "/streams/deployments/there"), {"properties": {"count": "2"}}, 400, "module.<label>"),
        (("POST", "/streams/deployments/there"), {"properties": {"module.log.count": 2}}, 400, "Expected `str`"),
        (("POST", "/streams/deployments/there"), {"fused": "yes"}, 400, "Expected `bool`"),
        (("POST", "/streams/deployments/none"), None, 404, "no stream named 'none'"),
        (("DELETE", "/streams/deployments/there"), None, 409, "not deployed"),
        (("DELETE", "/streams/deployments/none"), None, 404, "no stream named 'none'"),
        (("DELETE", "/streams/definitions/none"), None, 404, "no stream named 'none'"),
        (("GET", "/streams/definitions/a%20b"), None, 404, "no stream named 'a b'"),
        (("GET", "/streams/definitions/%00"), None, 404, "no stream named"),
        (("GET", "/streams/definitions/..%2F..%2Fzookeeper"), None, 404, "There is no GET"),
        (("GET", "/streams/definitions?page=-1"), None, 400, "as page, got '-1'"),
        (("GET", "/streams/definitions?size=0"), None, 400, "Expected a size of 1 to"),
        (("GET", "/streams/definitions?size=99999"), None, 400, "Expected a size of 1 to"),
        (("GET", "/streams/definitions?pages=1"), None, 400, "takes page, size, got 'pages'"),
        (("GET", "/modules?type=plumbing"), None, 400, "Expected one of source"),
        (("GET", "/modules/source/tim"), None, 404, "source:tim"),
        (("GET", "/modules/plumbing/time"), None, 404, "plumbing:time"),
        (("POST", "/validate"), {"definition": "time | log", "kind": "poem"}, 400, "$.kind"),
        (("POST", "/validate"), {"definition": "a", "kind": "job", "name": "a b"}, 400, "$.name"),
        (("PUT", "/streams/definitions"), {}, 405, "There is no PUT"),
        (JOB, None, 400, "needs a body"),
        (JOB, {"name": "a b", "definition": "timestampfile"}, 400, "$.name"),
        (JOB, {"name": "j", "definition": ""}, 400, "$.definition"),
        (JOB, {"name": "j", "definition": "timestampfile |"}, 400, "XD119E: (pos 15)"),
        (JOB, {"name": "j", "definition": "timestampfil"}, 400, "Did you mean timestampfile?"),
        (JOB, {"name": "j", "definition": "time"}, 400, "which is a source"),
        (JOB, {"name": "j", "definition": "<" * 1_000}, 400, "XD101E"),
        (JOB, {"name": "j", "definition": "timestampfile --fileName=a/b"}, 400, "XD114E: (pos 25)"),
        (JOB, {"name": "timestampfile", "definition": "timestampfile"}, 400, "XD110E"),
        (JOB, {"name": "nightly", "definition": "timestampfile"}, 409, "already a job named 'nightly'"),
        (("POST", "/jobs/deployments/none"), None, 404, "no job named 'none'"),
        (("POST", "/jobs/deployments/there"), None, 404, "no job named 'there'"),
        (("DELETE", "/jobs/deployments/nightly"), None, 409, "not deployed"),
        (LAUNCH, None, 400, "needs a body"),
        (LAUNCH, {"name": "none"}, 404, "no job named 'none'"),
        (LAUNCH, {"name": "nightly"}, 409, "not currently deployed"),
        (LAUNCH, {"name": "nightly", "parameters": {"a": 1}}, 400, "Expected `str`"),
        (LAUNCH, {"name": "nightly", "parameters": {"": "1"}}, 400, "parameters"),
        (LAUNCH, {"name": "nightly", "parameters": {"a": "x" * 4_097}}, 400, "parameters"),
        (LAUNCH, {"name": "nightly", "parameters": {str(number): "" for number in range(101)}}, 400, "parameters"),
        (("GET", "/jobs/executions/1"), None, 404, "no execution 1"),
        (("GET", "/jobs/executions/-1"), None, 404, "no execution '-1'"),
        (("GET", "/jobs/executions/99999999999999999999"), None, 404, "no execution '9999"),
        (("PUT", "/jobs/executions/1"), None, 400, "Expected one of stop=true, restart=true"),
        (("PUT", "/jobs/executions/1?stop=true&restart=true"), None, 400, "Expected one of stop=true"),
        (("PUT", "/jobs/executions/1?stop=perhaps"), None, 400, "Expected one of stop=true"),
        (("PUT", "/jobs/executions/1?pause=true"), None, 400, "takes stop, restart, got 'pause'"),
        (("PUT", "/jobs/executions/1?stop=true"), None, 404, "no execution 1"),
        (("PUT", "/jobs/executions/x?restart=true"), None, 404, "no execution 'x'"),
        (("DELETE", "/jobs/executions/1"), None, 405, "There is no DELETE"),
        (("GET", "/stream"), None, 404, "There is no GET"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    admin: Admin, request_: tuple[str, str], body: object, status: int, part: str
) -> None:
    admin.definitions.texts["there"] = "time | log"
    admin.jobs.texts["nightly"] = "timestampfile"
    found, _, sentence = admin.told(*request_, body)
    assert (found, part in sentence) == (status, True), sentence
    assert admin.definitions.texts == {"there": "time | log"}
    assert admin.jobs.texts == {"nightly": "timestampfile"}
    assert admin.runtime.deployed == admin.job_runtime.deployed == admin.job_runtime.launched == {}


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 400),
        (b"null", 400),
        (b"[]", 400),
        (b'{"name": "a", "definition": "\xff"}', 400),
        (b'{"name": "a", "definition": "\\ud800 | log"}', 400),
        (b"[" * 100_000, 400),
        (b'{"name":' * 10_000, 400),
        (b'{"name": "' + b"a" * MAX_BODY, 413),
    ],
)
def test_a_body_that_is_none_is_refused(admin: Admin, content: bytes, status: int) -> None:
    for path in ("/streams/definitions", "/streams/deployments/there", "/validate", *JOB[1:], *LAUNCH[1:]):
        admin.definitions.texts = {"there": "time | log"}
        response = admin.send("POST", path, content=content)
        assert response.status_code == status, response.text[:300]
        assert response.json()["errorMessage"]
        assert admin.definitions.texts == {"there": "time | log"}


def test_an_error_shows_where_it_is(admin: Admin) -> None:
    _, _, sentence = admin.told(*CREATE, {"name": "x", "definition": "time | lag"})
    assert sentence.splitlines()[1:] == ["time | lag", "       ^"]
    problem = admin.ask("POST", "/validate", {"definition": "time | lag"})[1]["problem"]
    assert (problem["code"], problem["position"]) == ("XD112E", 7)


def test_a_stream_can_be_validated_again_under_its_own_name(admin: Admin) -> None:
    admin.definitions.texts["there"] = "time | log"
    found = admin.ask("POST", "/validate", {"name": "there", "definition": "time | log"})
    assert found == (200, {"valid": True, "problem": None})


def test_a_page_of_another_site_can_do_nothing(admin: Admin) -> None:
    headers = {"Origin": "http://example.com"}
    assert admin.told(*CREATE, TICKTOCK, headers=headers)[0] == 403
    assert admin.definitions.texts == {}


# Properties: any text as a name or a body, and any piece of the language as a definition.

ONCE = settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
PIECES = st.sampled_from(
    ["time", "log", "filter", "|", ">", "queue:a", "tap:stream:there", "--", "--expression=", "'", '"', " ", "=", ":"]
)
DEFINITIONS = st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=12).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
NAME = set(string.ascii_letters + string.digits + "_-")


@ONCE
@given(name=st.text(max_size=300), definition=DEFINITIONS)
def test_any_name_and_definition_has_an_answer(admin: Admin, name: str, definition: str) -> None:
    admin.definitions.texts = {"there": "time | log"}
    body = json.dumps({"name": name, "definition": definition}).encode()
    status = admin.send("POST", "/streams/definitions", content=body).status_code
    assert status in (201, 400, 409)
    kept = admin.definitions.texts.keys() - {"there"}
    assert bool(kept) == (status == 201)
    for each in kept:
        assert set(each) <= NAME
        parse_stream(admin.definitions.texts[each], each)


@ONCE
@given(path=st.sampled_from([each for each in RESOURCES if each.takes is not None]), body=JSON)
def test_any_body_has_an_answer(admin: Admin, path: Any, body: object) -> None:
    admin.definitions.texts = {"there": "time | log"}
    response = admin.send(path.method, path.path.format(name="there"), content=json.dumps(body).encode())
    assert response.status_code < 500 or response.status_code == 501, response.text
    assert admin.definitions.texts == {"there": "time | log"}
    admin.runtime.deployed.clear()


@ONCE
@example(name=".")
@example(name="..")
@given(name=st.text(min_size=1, max_size=40))
def test_any_name_in_a_path_has_an_answer(admin: Admin, name: str) -> None:
    for method, path in (
        ("GET", "/streams/definitions/"),
        ("DELETE", "/streams/deployments/"),
        ("GET", "/modules/source/"),
    ):
        response = admin.send(method, path + path_part(name.encode("utf-8", "replace").decode()))
        assert response.status_code in (200, 404, 405), response.text


@ONCE
@given(start=DEFINITIONS)
def test_completions_go_on_from_what_was_given(admin: Admin, start: str) -> None:
    response = admin.send("GET", "/completions/stream", params={"start": start.encode("utf-8", "replace").decode()})
    assert response.status_code == 200
    for proposal in response.json()["proposals"]:
        assert proposal.startswith(start)
        assert len(proposal) > len(start)
