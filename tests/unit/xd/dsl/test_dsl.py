"""The language of streams: what each text becomes, and the code and position of each error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.xd.dsl import Channel, Code, DslError, Module, Stream, Tap, parse_stream

LOG = Module("log", "log")
TIME = Module("time", "time")


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("time | log", Stream((TIME, LOG))),
        ("time|log", Stream((TIME, LOG))),
        ("ticktock = time | log", Stream((TIME, LOG), "ticktock")),
        ("a: log | b:\tlog", Stream((Module("log", "a"), Module("log", "b")))),
        ("log --name=n>5", Stream((Module("log", "log", (("name", "n>5"),)),))),
        ("log --name=f('a b')", Stream((Module("log", "log", (("name", "f('a b')"),)),))),
        ("log --name=it's", Stream((Module("log", "log", (("name", "it's"),)),))),
        ("log --name=--x", Stream((Module("log", "log", (("name", "--x"),)),))),
        ("a:log | b:log", Stream((Module("log", "a"), Module("log", "b")))),
        ("log --name=x --level='a | b'", Stream((Module("log", "log", (("name", "x"), ("level", "a | b"))),))),
        ("log --name='it''s'", Stream((Module("log", "log", (("name", "it's"),)),))),
        ('log --name="a > b"', Stream((Module("log", "log", (("name", "a > b"),)),))),
        ("log --name=''", Stream((Module("log", "log", (("name", ""),)),))),
        ("queue:a > log", Stream((LOG,), None, Channel("queue", "a"))),
        ("time > topic:b", Stream((TIME,), None, None, Channel("topic", "b"))),
        (
            "queue:a > topic:b",
            Stream((Module("bridge", "bridge"),), None, Channel("queue", "a"), Channel("topic", "b")),
        ),
        ("tap:stream:s > log", Stream((LOG,), None, Tap("stream", "s"))),
        ("tap:stream:s.f.1 > log", Stream((LOG,), None, Tap("stream", "s", "f", 1))),
        (":s.f > log", Stream((LOG,), None, Tap("stream", "s", "f"))),
    ],
)
def test_stream(text: str, stream: Stream) -> None:
    assert parse_stream(text) == stream


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("", Code.EMPTY, 0),
        ("  ", Code.EMPTY, 2),
        ("time |", Code.EXPECTED_MODULE, 6),
        ("| log", Code.EXPECTED_MODULE, 0),
        ("log --name", Code.EXPECTED_OPTION, 4),
        ("log --name =x", Code.EXPECTED_OPTION, 4),
        ("log --name= x", Code.EXPECTED_VALUE, 11),
        ("log --name='x", Code.UNCLOSED_QUOTE, 11),
        ("log --name='it''", Code.UNCLOSED_QUOTE, 11),
        ("log --name='''", Code.UNCLOSED_QUOTE, 11),
        ("log --a=1 --a=2", Code.DUPLICATE_OPTION, 10),
        ("log | log", Code.DUPLICATE_LABEL, 6),
        ("log = time | log", Code.NAMED_LIKE_MODULE, 13),
        ("time > log", Code.EXPECTED_CHANNEL, 7),
        ("queue: a > log", Code.EXPECTED_CHANNEL, 0),
        ("queue : a > log", Code.UNEXPECTED_TEXT, 6),
        ("time | f :log", Code.UNEXPECTED_TEXT, 9),
        ("log --name=f(a b) | log", Code.UNEXPECTED_TEXT, 15),
        ("log --name=''Hi, you'' | log", Code.UNEXPECTED_TEXT, 17),
        ("queue:a log", Code.EXPECTED_CHANNEL, 8),
        ("time log", Code.UNEXPECTED_TEXT, 5),
        ("a" * 65_537, Code.TOO_LONG, 0),
    ],
)
def test_error(text: str, code: Code, position: int) -> None:
    with pytest.raises(DslError) as raised:
        parse_stream(text)
    assert (raised.value.code, raised.value.position) == (code, position)


def test_caret_stands_under_the_error() -> None:
    with pytest.raises(DslError) as raised:
        parse_stream("time\n| log --a")
    assert str(raised.value).split("\n")[1:] == ["| log --a", "      ^"]


@given(st.text(alphabet="ab:.|>-='\" \nqueue:tap", max_size=40))
def test_any_text_is_a_stream_or_an_error_with_a_position_in_it(text: str) -> None:
    position = 0
    try:
        parse_stream(text)
    except DslError as error:
        position = error.position
    assert 0 <= position <= len(text)


@pytest.mark.parametrize(
    ("text", "name", "position"),
    [("time | log", "tick tock", 0), (" time | log", "", 0), (" other = time | log", "ticktock", 1)],
)
def test_a_name_that_is_none_or_another_is_refused(text: str, name: str, position: int) -> None:
    with pytest.raises(DslError) as caught:
        parse_stream(text, name)
    assert (caught.value.code, caught.value.position) == (Code.NAME, position)


def test_the_caret_for_a_malformed_name_stands_under_that_name() -> None:
    with pytest.raises(DslError) as caught:
        parse_stream("time | log", "tick tock")
    assert str(caught.value).splitlines()[1:] == ["tick tock", "^"]


def test_modules_know_where_they_stand() -> None:
    text = "time  --a=1 --b='2' | x:log"
    first, last = parse_stream(text).modules
    assert (first.position, last.position) == (0, text.index("x:log"))
    assert [text[at] for at in first.value_positions] == ["1", "2"]


def test_a_name_may_be_given_twice() -> None:
    assert parse_stream("ticktock = time | log", "ticktock") == parse_stream("time | log", "ticktock")
