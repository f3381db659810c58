from __future__ import annotations

import inspect
import pickle

import pytest

from storm_on_spark.api import errors
from storm_on_spark.api.errors import (
    ComponentError,
    ConfigError,
    FailedException,
    InvalidTopologyError,
    ReportedFailedException,
    StormError,
    TopologyFailedError,
    UnknownFieldError,
)

CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__]
PLAIN = [cls for cls in CLASSES if cls not in (ComponentError, TopologyFailedError)]

EXAMPLES = [
    *(cls("something is wrong") for cls in PLAIN),
    InvalidTopologyError("no", component="count", stream="late"),
    ConfigError("no", key="topology.debug"),
    ComponentError("count", 4, "execute", "KeyError: 'x'", "Traceback ..."),
    TopologyFailedError("word-count", "the disk is full"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_survive_pickling_with_message_and_attributes(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_what_the_runtime_raises_has_one_root_and_what_users_raise_is_apart() -> None:
    users = {FailedException, ReportedFailedException}
    assert {cls for cls in CLASSES if not issubclass(cls, StormError)} == users
    assert issubclass(ReportedFailedException, FailedException)


def test_the_drawn_tree_names_every_class() -> None:
    assert errors.__doc__ is not None
    assert [cls.__name__ for cls in CLASSES if cls.__name__ not in errors.__doc__] == []


def test_a_message_is_shown_as_it_is_even_by_a_key_error() -> None:
    assert str(UnknownFieldError('no field "x"')) == 'no field "x"'


def test_a_component_error_says_where() -> None:
    assert str(ComponentError("count", None, "prepare", "OSError: no disk")) == (
        'component "count" failed in prepare: OSError: no disk'
    )
    error = ComponentError("count", 4, "execute", "KeyError: 'x'", "Traceback ...")
    assert str(error) == "component \"count\" (task 4) failed in execute: KeyError: 'x'"
    assert (error.component, error.task, error.phase) == ("count", 4, "execute")
    assert (error.message, error.cause_text) == ("KeyError: 'x'", "Traceback ...")
