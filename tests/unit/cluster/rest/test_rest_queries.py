"""Queries of Storm UI's clients: windows, system components, JSONP."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from starlette.requests import Request

from storm_on_spark.cluster.errors import RecordError
from storm_on_spark.cluster.http.messages import answer
from storm_on_spark.cluster.rest.queries import for_script, selection


def request(query: str, method: str = "GET") -> Request:
    return Request({"type": "http", "method": method, "path": "/", "query_string": query.encode(), "headers": []})


@pytest.mark.parametrize(
    ("query", "selected"),
    [
        ("", (":all-time", False)),
        ("window=600&sys=true", ("600", True)),
        ("window=:all-time&sys=1", (":all-time", True)),
        ("window=%3Aall-time&sys=0", (":all-time", False)),
    ],
)
def test_windows_and_system_components(query: str, selected: tuple[str, bool]) -> None:
    assert selection(request(query)) == selected


@pytest.mark.parametrize("query", ["window=601", "window=", "sys=maybe", "window=" + "9" * 10_000])
def test_what_there_is_not_is_refused_in_a_short_sentence(query: str) -> None:
    with pytest.raises(RecordError) as refused:
        selection(request(query))
    assert len(str(refused.value)) < 200


def test_an_answer_becomes_a_script_that_calls_the_function() -> None:
    plain = answer({"a": 1})
    assert for_script(request(""), plain) is plain
    script = for_script(request("callback=app.show"), plain)
    assert script.body == b'/**/app.show({"a":1});'
    assert script.headers["content-type"].startswith("application/javascript")
    assert script.headers["x-content-type-options"] == "nosniff"
    assert for_script(request("callback=app.show", "POST"), plain) is plain


@pytest.mark.parametrize("name", ["alert(1)//", "a b", "1a", "", "</script>", "\u00e9t\u00e9", "a" * 200])
def test_what_is_no_name_of_a_function_is_refused(name: str) -> None:
    with pytest.raises(RecordError, match="callback is a name of a function"):
        for_script(request(f"callback={quote(name)}"), answer({}))
