from __future__ import annotations

import pickle

import pytest

from storm_on_spark.api import (
    AllGrouping,
    CustomGrouping,
    CustomStreamGrouping,
    DirectGrouping,
    Fields,
    FieldsGrouping,
    GlobalGrouping,
    GlobalStreamId,
    Grouping,
    InvalidTopologyError,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)


class First(CustomStreamGrouping):
    def choose_tasks(self, task_id, values):
        return [task_id]


first = First()

DESCRIBED: list[tuple[Grouping, str]] = [
    (ShuffleGrouping(), "shuffle"),
    (FieldsGrouping(Fields("word")), "fields(word)"),
    (FieldsGrouping(Fields("word", "day")), "fields(word, day)"),
    (AllGrouping(), "all"),
    (GlobalGrouping(), "global"),
    (NoneGrouping(), "none"),
    (LocalOrShuffleGrouping(), "local_or_shuffle"),
    (PartialKeyGrouping(Fields("word")), "partial_key(word)"),
    (DirectGrouping(), "direct"),
    (CustomGrouping(first), "custom(First)"),
]


@pytest.mark.parametrize(("grouping", "text"), DESCRIBED, ids=[text for _, text in DESCRIBED])
def test_describe(grouping: Grouping, text: str) -> None:
    assert grouping.describe() == text


@pytest.mark.parametrize("grouping", [grouping for grouping, _ in DESCRIBED[:-1]], ids=repr)
def test_groupings_are_equal_by_value_and_pickle(grouping: Grouping) -> None:
    again = pickle.loads(pickle.dumps(grouping))
    assert again == grouping
    assert hash(again) == hash(grouping)


def test_groupings_of_different_kinds_differ() -> None:
    assert len({grouping for grouping, _ in DESCRIBED}) == len(DESCRIBED)
    assert FieldsGrouping(Fields("word")) != PartialKeyGrouping(Fields("word"))


def test_the_base_is_abstract() -> None:
    with pytest.raises(TypeError, match="describe"):
        Grouping()  # type: ignore[abstract]
    with pytest.raises(TypeError, match="choose_tasks"):
        CustomStreamGrouping()  # type: ignore[abstract]


@pytest.mark.parametrize("kind", [FieldsGrouping, PartialKeyGrouping])
def test_a_grouping_by_no_fields_is_refused(kind: type) -> None:
    with pytest.raises(InvalidTopologyError, match=r"needs at least one field; use a global grouping"):
        kind(Fields())


def test_names_are_stored_as_fields() -> None:
    assert FieldsGrouping("word") == FieldsGrouping(Fields("word"))  # type: ignore[arg-type]


def test_a_custom_grouping_must_be_an_instance() -> None:
    with pytest.raises(InvalidTopologyError, match="not the class First: did you forget the parentheses"):
        CustomGrouping(First)  # type: ignore[arg-type]
    with pytest.raises(InvalidTopologyError, match=r"subclass of CustomStreamGrouping, not 'x' \(str\)"):
        CustomGrouping("x")  # type: ignore[arg-type]


def test_prepare_is_optional() -> None:
    assert first.prepare(None, GlobalStreamId("split"), [1]) is None  # type: ignore[func-returns-value, arg-type]


@pytest.mark.parametrize("wrong", ["", None, 3, Fields("word")])
def test_stream_ids_are_strings(wrong: object) -> None:
    with pytest.raises(InvalidTopologyError, match="a component id must be a string that is not empty"):
        GlobalStreamId(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidTopologyError, match="a stream id must be a string that is not empty"):
        GlobalStreamId("split", wrong)  # type: ignore[arg-type]


def test_stream_ids_sort_and_read_well() -> None:
    ids = [GlobalStreamId("b"), GlobalStreamId("a", "late"), GlobalStreamId("a")]
    assert [str(id_) for id_ in sorted(ids)] == ["a", "a:late", "b"]
