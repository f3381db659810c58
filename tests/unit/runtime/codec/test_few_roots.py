"""What a few messages are written by, without numpy, is what many are written by."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.runtime.codec import chunk
from storm_on_spark.runtime.codec.packing import pack_ids, pack_range, pack_steady, unpack_ids, unpack_steady
from storm_on_spark.runtime.tracking.acker import INIT
from storm_on_spark.runtime.tracking.fold import shares_of, split_by_acker
from storm_on_spark.runtime.tracking.lineage import FEW, marked

ids = st.integers(0, 2**64 - 1)


@given(st.integers(1, 2**60), st.integers(0, 2 * FEW), st.integers(1, 5))
def test_the_shares_of_ackers_are_the_same_chunks(first: int, size: int, number: int) -> None:
    ackers = tuple(range(50, 50 + number))
    roots = np.arange(first, first + size, dtype=np.uint64)
    few = [
        (task, chunk.encode_steady_acks(share, INIT, target=task, source=3, clock=9, receipts=77))
        for task, share in shares_of(ackers, first, size)
    ]
    assert few == [
        (task, chunk.encode_acks(*part, target=task, source=3, clock=9, receipts=77))
        for task, part in split_by_acker(ackers, marked(roots, INIT))
    ]
    for _, body in few:
        header = chunk.read_header(body)
        found, _, _, receipts = chunk.read_acks(header, body)
        if len(found) <= FEW:
            assert chunk.read_few_acks(header, body, INIT) == (found.tolist(), receipts)
        assert chunk.read_few_acks(header, body, INIT + 1) is None or not len(found)


@given(st.lists(ids, min_size=1, max_size=6) | st.builds(lambda a, n: [a] * n, ids, st.integers(1, 6)))
def test_ids_with_one_difference_are_packed_alike(roots: list[int]) -> None:
    packed, few = pack_ids(np.array(roots, np.uint64)), pack_steady(roots)
    if few is not None:
        assert unpack_ids(memoryview(few), len(roots))[0].tolist() == roots
        assert unpack_steady(memoryview(few), len(roots)) == roots
        assert few == packed
    read = unpack_steady(memoryview(packed), len(roots))
    assert read is None or read == roots


def test_several_roots_of_a_tuple_are_no_ids_that_can_be_packed() -> None:
    assert pack_steady([(1, 2)]) is None
    assert pack_steady([1, (1, 2)]) is None
    assert pack_range(range(5, 5)) == pack_ids(np.empty(0, np.uint64)) == b""
