from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api import Fields, InvalidTopologyError, OutputFieldsDeclarer, StreamSpec
from storm_on_spark.api.text.printable import is_one_line

names = st.text(min_size=1).filter(lambda name: is_one_line(name) and not name.startswith("__"))


@given(st.dictionaries(names, st.tuples(st.lists(st.text(min_size=1).filter(is_one_line), unique=True), st.booleans())))
def test_what_is_declared_is_there(declared: dict[str, tuple[list[str], bool]]) -> None:
    declarer = OutputFieldsDeclarer("split")
    for stream, (fields, direct) in declared.items():
        declarer.declare_stream(stream, fields, direct)
    assert declarer.streams == {
        stream: StreamSpec(Fields(fields), direct) for stream, (fields, direct) in declared.items()
    }


def test_declare_is_the_default_stream() -> None:
    declarer = OutputFieldsDeclarer("split")
    declarer.declare("word", direct=True)
    assert declarer.streams == {"default": StreamSpec(Fields("word"), direct=True)}


def test_streams_is_a_copy() -> None:
    declarer = OutputFieldsDeclarer("split")
    declarer.streams["x"] = StreamSpec(Fields())
    assert declarer.streams == {}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("", "word"), "a stream id must be a string that is not empty, not '' (str)"),
        (
            (Fields("word"), "late"),
            "a stream id must be a string that is not empty, not Fields('word') (Fields)",
        ),
        (("__tick", "word"), 'stream "__tick": ids that start with "__" are reserved for the system'),
        (("late", 3), 'stream "late": fields must be Fields, a name or a list of names, not 3 (int)'),
        (("late", None), 'stream "late": fields must be Fields, a name or a list of names, not None'),
        (
            ("late", ["a", "a"]),
            'stream "late": field "a" occurs twice in "a", "a"; names must differ',
        ),
        (
            ("late", True, Fields("word")),
            "stream \"late\": direct must be True or False, not Fields('word') (Fields); the order is (fields, direct)",
        ),
    ],
)
def test_wrong_declarations_name_the_component(arguments: tuple[object, ...], problem: str) -> None:
    with pytest.raises(InvalidTopologyError) as caught:
        OutputFieldsDeclarer("split").declare_stream(*arguments)  # type: ignore[arg-type]
    assert str(caught.value) == f'component "split": {problem}'
    assert caught.value.component == "split"


def test_a_stream_is_declared_once() -> None:
    declarer = OutputFieldsDeclarer("split")
    declarer.declare(Fields("word"))
    with pytest.raises(InvalidTopologyError) as caught:
        declarer.declare(Fields("word", "count"))
    assert str(caught.value) == (
        'component "split": stream "default" is declared twice; it already has the fields "word"'
    )
    assert (caught.value.component, caught.value.stream) == ("split", "default")
