"""When a Python worker looks through all its objects for garbage."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from storm_on_spark.spark.worker_daemon import Garbage


class Node:
    """Refers to itself, so that only the collector can remove it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="module")
def hidden_again() -> Iterator[None]:
    """What the run hides from the collector for good, see `tests/conftest.py`."""
    was_hidden = gc.get_freeze_count() > 0
    yield
    gc.collect()
    if was_hidden:
        gc.freeze()


def test_old_objects_are_not_looked_through_after_each_task() -> None:
    garbage = Garbage(every=3600, growth=100)
    garbage.after_task()
    assert gc.get_freeze_count() == 0, "the first time everything is looked through"
    gc.collect()
    for _ in range(3):
        garbage.after_task()
        assert gc.get_freeze_count() > 1000
        gc.collect()


def test_garbage_of_old_objects_goes_when_a_collection_is_due() -> None:
    garbage = Garbage(every=0, growth=100)
    gc.freeze()
    node = Node()
    gc.freeze()
    gone = weakref.ref(node)
    del node
    gc.collect()
    assert gone() is not None, "hidden from this collection"
    garbage.after_task()
    gc.collect()
    assert gone() is None


def test_a_collection_is_due_when_memory_has_grown() -> None:
    garbage = Garbage(every=3600, growth=1.2)
    for _ in range(3):
        garbage.after_task()
        gc.collect()
    assert gc.get_freeze_count() > 1000
    kept = [[number] for number in range(2_000_000)]
    garbage.after_task()
    assert gc.get_freeze_count() == 0
    assert len(kept) == 2_000_000


def test_young_garbage_goes_after_each_task() -> None:
    garbage = Garbage(every=3600, growth=100)
    garbage.after_task()
    gc.collect()
    garbage.after_task()
    gone = weakref.ref(Node())
    garbage.after_task()
    assert gone() is None
