"""What of a traceback a user is shown."""

from __future__ import annotations

import importlib
import json
import linecache
import sys
from pathlib import Path

import pytest

from storm_on_spark import Fields
from storm_on_spark.api.errors import ComponentError, TopologyFailedError
from storm_on_spark.api.info import ComponentInfo, ErrorInfo, TopologyInfo
from storm_on_spark.api.text.traces import MOST_CHARS, bounded, location, own_trace, reported, with_sources


def caught(code: object) -> BaseException:
    assert callable(code)
    try:
        code()
    except BaseException as error:
        return error
    raise AssertionError("it did not raise")


def test_frames_of_ours_are_left_out_wherever_they_are() -> None:
    trace = own_trace(caught(lambda: Fields("n").index_of("wrod")))
    assert "storm_on_spark" not in trace.partition("Error: ")[0].replace(__file__, "")
    assert "index_of" in trace
    assert location(trace) is not None
    assert location(trace)[0] == __file__


def test_what_is_all_ours_has_no_trace() -> None:
    assert own_trace(ValueError("never raised")) == ""


def test_a_chain_shows_every_link() -> None:
    def chained() -> None:
        try:
            json.loads("{")
        except ValueError as error:
            raise KeyError("settings") from error

    trace = own_trace(caught(chained))
    assert "JSONDecodeError" in trace
    assert "direct cause" in trace
    assert trace.endswith("KeyError: 'settings'\n")
    assert "json/decoder.py" in trace  # called by the user's code: it says where in the text
    only_called = location(own_trace(caught(lambda: json.loads("{"))))
    assert only_called is not None
    assert only_called[0] == __file__


@pytest.mark.skipif(sys.version_info < (3, 11), reason="groups are of Python 3.11")
def test_a_group_shows_its_members() -> None:
    def raises() -> None:
        raise ExceptionGroup("both", [ValueError("one"), KeyError("two")])  # noqa: F821 # see above

    trace = own_trace(caught(raises))
    assert "ValueError: one" in trace
    assert "KeyError: 'two'" in trace
    assert location(trace) is not None


def test_a_syntax_error_shows_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wrong_syntax.py").write_text("def f(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    trace = own_trace(caught(lambda: importlib.import_module("wrong_syntax")))
    assert "def f(:" in trace
    assert location(trace) == (str(tmp_path / "wrong_syntax.py"), 1)


def test_endless_recursion_and_endless_texts_are_bounded() -> None:
    def deeper(n: int) -> int:
        return deeper(n + 1)

    def shouts() -> None:
        raise ValueError("x" * 10_000_000)

    def many_lines() -> None:
        raise ValueError("line\n" * 100_000)

    for code in (lambda: deeper(0), shouts, many_lines):
        trace = own_trace(caught(code))
        assert 0 < len(trace) <= MOST_CHARS
        assert trace.startswith("Traceback")


def test_an_error_that_can_not_be_printed_is_no_second_error() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def raises() -> None:
        raise Broken

    error = ComponentError.of("count", 4, "execute", caught(raises))
    assert "Broken" in str(error)
    assert location(error.own_trace) is not None


def test_what_is_reported_without_being_raised_names_the_line_that_reports_it() -> None:
    trace = reported(ValueError("odd"))
    assert location(trace) is not None
    assert location(trace)[0] == __file__
    assert trace.endswith("ValueError: odd\n")


def test_lines_that_only_this_process_can_read_are_added() -> None:
    name = "<cell of a notebook>"
    linecache.cache[name] = (10, None, ["first\n", "    counts[word]\n"], name)
    trace = f'Traceback (most recent call last):\n  File "{name}", line 2, in execute\nKeyError: 1\n'
    try:
        assert with_sources(trace).splitlines()[2] == "    counts[word]"
        assert with_sources(with_sources(trace)) == with_sources(trace)
    finally:
        del linecache.cache[name]


def test_bounded_keeps_beginning_and_end() -> None:
    text = "".join(f"{number}\n" for number in range(10_000))
    found = bounded(text, 300)
    assert len(found) <= 300
    assert found.startswith("0\n")
    assert found.endswith("9999\n")


def test_errors_say_where_they_come_from() -> None:
    trace = 'Traceback (most recent call last):\n  File "/home/u/job.py", line 31, in execute\nKeyError: 1\n'
    early, late = (ErrorInfo("count", 4, "KeyError: 1", time, trace) for time in (1.0, 2.0))
    components = {name: ComponentInfo(name, "bolt", 1, errors=(error,)) for name, error in (("a", late), ("b", early))}
    info = TopologyInfo("test", "FAILED", 1.0, components=components)
    assert info.errors == (early, late)
    found = info.to_dict()["components"]["a"]["errors"][0]
    assert (found["file"], found["line"], found["trace"]) == ("/home/u/job.py", 31, trace)
    failed = TopologyFailedError("test", "it", trace)
    assert str(failed) == 'topology "test" failed: it'
    assert not hasattr(failed, "__notes__") or trace in failed.__notes__[0]
