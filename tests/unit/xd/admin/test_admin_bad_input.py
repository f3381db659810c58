"""Every resource of the description of an admin's REST interface refuses what makes no sense, and changes nothing."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote

import pytest

from storm_on_spark.cluster.http.messages import MAX_BODY
from tests.unit.xd.rest_server import Admin

_DESCRIPTION = Admin().ask("GET", "/openapi.json")[1]
ROUTES = [
    (method.upper(), path, found)
    for path, methods in sorted(_DESCRIPTION["paths"].items())
    for method, found in sorted(methods.items())
]
_NAMES = ("a b", "../there", "..", "%00", "\n", "there\n", "é", "'", "a" * 300, "${there}", "*", "-1", "9" * 30)
_BODIES = (
    (b"{", 400),
    (b"null", 400),
    (b"[]", 400),
    (b"7", 400),
    (b'"text"', 400),
    (b'{"\xff": 1}', 400),
    (b'{"nonsense": 1}', 400),
    (b"[" * 100_000, 400),
    (b'{"name":' * 10_000, 400),
    (b'{"name": "' + b"a" * MAX_BODY, 413),
)
_PAGES = ("page=-1", "page=x", "page=", "page=1.5", "page=" + "9" * 5_000, "size=0", "size=-1", "size=x", "size=100000")


class Asked:
    """An admin with a stream, a job and an execution; each must be there after each request."""

    def __init__(self) -> None:
        self.admin = Admin()
        self.admin.definitions.texts["there"] = "time | log"
        self.admin.jobs.texts["there"] = "timestampfile"
        self.admin.ask("POST", "/streams/deployments/there")
        self.admin.ask("POST", "/jobs/deployments/there")
        self.admin.ask("POST", "/jobs/executions", {"name": "there"})
        self.before = self._state()

    def _state(self) -> object:
        admin = self.admin
        modules = self.admin.ask("GET", "/modules?size=1000")[1]["content"]
        deployed = dict(admin.runtime.deployed), dict(admin.job_runtime.deployed)
        return (
            dict(admin.definitions.texts),
            dict(admin.jobs.texts),
            deployed,
            dict(admin.job_runtime.launched),
            modules,
        )

    def refuses(self, method: str, path: str, *allowed: int, **more: Any) -> None:
        """Sends a request, which must be refused by one of the statuses, with a sentence of one or a few lines."""
        response = self.admin.send(method, path, **more)
        assert response.status_code in allowed, (path[:200], response.status_code, response.text[:300])
        found = response.json()
        assert found["error"]
        assert 10 < len(found["errorMessage"]) < 2_000
        assert "Traceback" not in found["errorMessage"]
        assert self._state() == self.before


@pytest.fixture(scope="module")
def asked() -> Asked:
    return Asked()


def _filled(path: str, name: str = "there") -> str:
    """Returns a path with a name for each of its parameters."""
    for parameter, value in (("{type}", "source"), ("{id}", name), ("{name}", name)):
        path = path.replace(parameter, value)
    assert "{" not in path
    return path


@pytest.mark.parametrize(("method", "path"), [each[:2] for each in ROUTES])
def test_a_parameter_that_a_resource_does_not_have_is_refused(asked: Asked, method: str, path: str) -> None:
    asked.refuses(method, f"{_filled(path)}?nonsense=1", 400)


@pytest.mark.parametrize(("method", "path"), [each[:2] for each in ROUTES if "requestBody" in each[2]])
def test_a_body_that_is_none_is_refused(asked: Asked, method: str, path: str) -> None:
    for content, status in _BODIES:
        asked.refuses(method, _filled(path), status, content=content)


@pytest.mark.parametrize(("method", "path"), [each[:2] for each in ROUTES if "{" in each[1]])
def test_a_name_that_nothing_has_is_refused(asked: Asked, method: str, path: str) -> None:
    for name in _NAMES:
        more = {"content": b"{}"} if method == "POST" else {}
        query = "?stop=true" if method == "PUT" else ""
        if name == ".." or name.startswith("../"):
            # Clients resolve these; behind the sign for a slash they come through.
            name = f"x/{name}"
        asked.refuses(method, _filled(path, quote(name, safe="")) + query, 404, 405, **more)


def test_a_type_that_no_module_has_is_refused(asked: Asked) -> None:
    for method in ("GET", "DELETE"):
        for kind in ("plumbing", "sources", "*", "..%2F"):
            asked.refuses(method, f"/modules/{kind}/time", 404)


@pytest.mark.parametrize(
    ("method", "path"),
    [each[:2] for each in ROUTES if any(given["name"] == "page" for given in each[2].get("parameters", ()))],
)
def test_a_page_that_can_not_be_is_refused(asked: Asked, method: str, path: str) -> None:
    for query in _PAGES:
        asked.refuses(method, f"{_filled(path)}?{query}", 400)


@pytest.mark.parametrize("path", sorted({each[1] for each in ROUTES}))
def test_a_method_that_a_resource_does_not_have_is_refused(asked: Asked, path: str) -> None:
    there = {method for method, known, _ in ROUTES if known == path}
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH"} - there:
        asked.refuses(method, _filled(path), 404, 405)


def test_an_unknown_counter_has_no_resolution(asked: Asked) -> None:
    asked.refuses("GET", "/metrics/aggregate-counters/there?resolution=second", 400, 404)


_STEP = """
from storm_on_spark.xd.modules import ModuleDeclaration

MODULE = ModuleDeclaration("job", "mark", "Marks.", lambda context: None, ())
"""


@pytest.mark.parametrize(("type_", "kind"), [("processor", "stream"), ("job", "job")])
def test_a_module_that_is_used_stays(type_: str, kind: str) -> None:
    admin = Admin()
    if kind == "stream":
        name = "words"
        assert admin.ask("POST", "/modules", {"name": name, "definition": "splitter | filter"})[0] == 201
        using, broken = "time | words | log", "time |"
    else:
        name = "mark"
        sha256 = hashlib.sha256(_STEP.encode()).hexdigest()
        assert admin.ask("POST", "/modules/files", {"file": "a.py", "source": _STEP, "sha256": sha256})[0] == 201
        using, broken = "mark || timestampfile", "mark ||"
    texts = (admin.definitions if kind == "stream" else admin.jobs).texts
    # The text of the second can't be read, as somebody's hand may have written it.
    texts |= {"using": using, "broken": broken}
    status, _, sentence = admin.told("DELETE", f"/modules/{type_}/{name}")
    assert (status, sentence) == (409, f"The module {type_}:{name} can't be deleted: it is used by {kind} using")
    del texts["using"]
    assert admin.ask("DELETE", f"/modules/{type_}/{name}") == (204, None)
