"""The rules by which a stored value takes part in a batch, one test each."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.trident.state.values import (
    OpaqueValue,
    StaleBatchError,
    TransactionalValue,
    opaque_update,
    transactional_update,
)


def add(number: int) -> Callable[[int | None], int]:
    return lambda stored: (stored or 0) + number


# --- opaque -----------------------------------------------------------------------------------------------------------


def test_an_opaque_value_of_no_batch_has_nothing_before_it() -> None:
    assert opaque_update(None, 1, add(3)) == OpaqueValue(1, 3, None)


def test_a_later_batch_counts_on_from_an_opaque_value_and_keeps_it_as_the_one_before() -> None:
    assert opaque_update(OpaqueValue(1, 3, None), 2, add(4)) == OpaqueValue(2, 7, 3)


def test_batches_may_be_missing_between_two_of_an_opaque_value() -> None:
    assert opaque_update(OpaqueValue(1, 3, None), 9, add(4)) == OpaqueValue(9, 7, 3)


def test_the_same_batch_again_counts_on_from_the_opaque_value_before_it() -> None:
    assert opaque_update(OpaqueValue(2, 7, 3), 2, add(4)) == OpaqueValue(2, 7, 3)


def test_the_same_batch_with_other_tuples_replaces_what_it_did_to_an_opaque_value() -> None:
    assert opaque_update(OpaqueValue(2, 7, 3), 2, add(10)) == OpaqueValue(2, 13, 3)


def test_the_first_batch_again_begins_an_opaque_value_anew() -> None:
    assert opaque_update(OpaqueValue(1, 3, None), 1, add(5)) == OpaqueValue(1, 5, None)


def test_an_earlier_batch_is_refused_by_an_opaque_value() -> None:
    with pytest.raises(StaleBatchError, match="batch 1 is behind the state, which has batch 2"):
        opaque_update(OpaqueValue(2, 7, 3), 1, add(4))


def test_no_batch_counts_on_from_an_opaque_value() -> None:
    assert opaque_update(OpaqueValue(2, 7, 3), None, add(1)) == OpaqueValue(None, 8, 7)


def test_a_batch_counts_on_from_an_opaque_value_that_belongs_to_none() -> None:
    assert opaque_update(OpaqueValue(None, 8, 7), 1, add(1)) == OpaqueValue(1, 9, 8)


def test_a_batch_reads_an_opaque_value_as_it_was_before_the_batch() -> None:
    stored = OpaqueValue(2, 7, 3)
    assert (stored.get(2), stored.get(3), stored.get(None)) == (3, 7, 7)


def test_an_earlier_batch_may_not_even_read_an_opaque_value() -> None:
    with pytest.raises(StaleBatchError):
        OpaqueValue(2, 7, 3).get(1)


# --- transactional ----------------------------------------------------------------------------------------------------


def test_a_transactional_value_of_no_batch() -> None:
    assert transactional_update(None, 1, add(3)) == TransactionalValue(1, 3)


def test_a_later_batch_counts_on_from_a_transactional_value() -> None:
    assert transactional_update(TransactionalValue(1, 3), 2, add(4)) == TransactionalValue(2, 7)


def test_the_same_batch_again_leaves_a_transactional_value() -> None:
    def fail(stored: object) -> object:
        raise AssertionError("it was updated again")

    stored = TransactionalValue(2, 7)
    assert transactional_update(stored, 2, fail) is stored


def test_the_same_batch_with_other_tuples_leaves_a_transactional_value_too() -> None:
    assert transactional_update(TransactionalValue(2, 7), 2, add(10)) == TransactionalValue(2, 7)


def test_an_earlier_batch_counts_on_from_a_transactional_value_as_in_storm() -> None:
    assert transactional_update(TransactionalValue(2, 7), 1, add(4)) == TransactionalValue(1, 11)


def test_no_batch_counts_on_from_a_transactional_value() -> None:
    assert transactional_update(TransactionalValue(2, 7), None, add(1)) == TransactionalValue(None, 8)
    assert transactional_update(TransactionalValue(None, 8), None, add(1)) == TransactionalValue(None, 9)


# --- laws -------------------------------------------------------------------------------------------------------------

attempts = st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=4), max_size=8)
"""Of each batch, what it adds in each of its attempts."""


@given(attempts)
def test_the_last_attempt_of_each_batch_is_in_an_opaque_value_once(batches: list[list[int]]) -> None:
    stored = None
    for txid, tried in enumerate(batches, 1):
        for number in tried:
            stored = opaque_update(stored, txid, add(number))
    assert (stored.curr if stored else 0) == sum(tried[-1] for tried in batches)


@given(attempts)
def test_the_first_attempt_of_each_batch_is_in_a_transactional_value_once(batches: list[list[int]]) -> None:
    stored = None
    for txid, tried in enumerate(batches, 1):
        for number in tried:
            stored = transactional_update(stored, txid, add(number))
    assert (stored.value if stored else 0) == sum(tried[0] for tried in batches)


def test_the_error_travels_between_processes() -> None:
    error = pickle.loads(pickle.dumps(StaleBatchError(1, 2)))
    assert (error.txid, error.stored) == (1, 2)
