from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api import Fields, InvalidTopologyError, TupleError, UnknownFieldError
from storm_on_spark.api.text.printable import is_one_line

names = st.lists(st.text(min_size=1).filter(is_one_line), unique=True)


@given(names)
def test_varargs_and_one_iterable_make_the_same_fields(given_names: list[str]) -> None:
    fields = Fields(*given_names)
    assert fields == Fields(given_names) == Fields(iter(given_names)) == Fields.of(given_names)
    assert hash(fields) == hash(Fields(given_names))
    assert list(fields) == fields.to_list() == given_names
    assert len(fields) == fields.size() == len(given_names)


@given(names)
def test_index_is_the_inverse_of_position(given_names: list[str]) -> None:
    fields = Fields(given_names)
    for position, name in enumerate(given_names):
        assert fields.index(name) == fields.field_index(name) == position
        assert fields[position] == fields.get(position) == name
        assert name in fields
        assert fields.contains(name)


@given(names, st.randoms())
def test_select_follows_the_selector(given_names: list[str], random) -> None:
    values = list(range(len(given_names)))
    chosen = random.sample(given_names, random.randint(0, len(given_names)))
    assert Fields(given_names).select(Fields(chosen), values) == [given_names.index(name) for name in chosen]


@given(names)
def test_pickle_and_copy_keep_the_value(given_names: list[str]) -> None:
    fields = Fields(given_names)
    assert pickle.loads(pickle.dumps(fields)) == copy.deepcopy(fields) == copy.copy(fields) == fields


def test_order_matters_and_other_types_differ() -> None:
    assert Fields("a", "b") != Fields("b", "a")
    assert Fields("a") != ("a",)
    assert Fields("a") != ["a"]


def test_a_single_string_is_one_name() -> None:
    assert list(Fields("word")) == ["word"]
    assert list(Fields.of("word")) == ["word"]
    assert Fields.of(fields := Fields("word")) is fields


@pytest.mark.parametrize(
    ("given_names", "problem"),
    [
        (("word", "word"), 'field "word" occurs twice in "word", "word"; names must differ'),
        (("word", ""), "field 1 must be a string that is not empty, not '' (str)"),
        ((["word", 3],), "field 1 must be a string that is not empty, not 3 (int)"),
        ((["a"], "b"), "field 0 must be a string that is not empty, not ['a'] (list)"),
        ((3,), "a field name must be a string, not 3 (int)"),
        ((None,), "a field name must be a string, not None"),
    ],
)
def test_wrong_names_are_refused(given_names: tuple[object, ...], problem: str) -> None:
    with pytest.raises(InvalidTopologyError) as caught:
        Fields(*given_names)  # type: ignore[arg-type]
    assert str(caught.value) == problem


def test_an_unknown_field_names_the_valid_ones_and_the_nearest() -> None:
    with pytest.raises(UnknownFieldError) as caught:
        Fields("word", "count").index("cuont")
    assert str(caught.value) == 'no field "cuont"; there are: "word", "count". Did you mean "count"?'
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("kind", [KeyError, ValueError, TupleError])
def test_an_unknown_field_is_caught_like_the_errors_of_mappings_and_lists(kind: type[Exception]) -> None:
    with pytest.raises(kind):
        Fields("word").index("x")


@pytest.mark.parametrize("name", [3, None, ["word"]])
def test_names_of_other_types_are_unknown_and_not_contained(name: object) -> None:
    assert name not in Fields("word")
    with pytest.raises(UnknownFieldError):
        Fields("word").index(name)  # type: ignore[arg-type]


def test_fields_are_immutable() -> None:
    fields = Fields("word")
    for attribute in Fields.__slots__:
        with pytest.raises(AttributeError, match="immutable"):
            setattr(fields, attribute, ("x",))
        with pytest.raises(AttributeError, match="immutable"):
            delattr(fields, attribute)
    assert list(fields) == ["word"]
    with pytest.raises(AttributeError):
        fields.other = 1  # type: ignore[attr-defined]


def test_repr_is_how_to_write_it() -> None:
    assert repr(Fields("word", "count")) == "Fields('word', 'count')"
    assert repr(Fields()) == "Fields()"
