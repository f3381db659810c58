"""Numbers that nobody shares, whoever claims at the same time and whatever answers are lost."""

from __future__ import annotations

import threading
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lengths import examples

from storm_on_spark.runtime.storage import LocalStorage, Storage, StoredObject
from storm_on_spark.runtime.storage.claims import Claim, claims_in, make_claim, read_claim, successor
from storm_on_spark.testing.storage.faulty import Fault, FaultyStorage


class _Memory(Storage):
    """A store in memory that yields to others between any two calls."""

    url = "memory"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def create(self, name, data):
        self.put(name, data)

    def put(self, name, data):
        self.objects[name] = data

    def read(self, name, start=0, length=None):
        return self.objects[name]

    def list_folder(self, folder="", *, deep=False):
        return sorted(StoredObject(name, len(data)) for name, data in self.objects.items())

    def delete(self, name):
        self.objects.pop(name, None)


class _Stepped(Storage):
    """A store whose caller stands still before every call until `turn` lets it go on."""

    url = "stepped"

    def __init__(self, inner: Storage) -> None:
        self._inner = inner
        self.may = threading.Semaphore(0)
        self.waits = threading.Semaphore(0)

    def _turn(self) -> None:
        self.waits.release()
        self.may.acquire()

    def create(self, name, data):
        self._turn()
        self._inner.create(name, data)

    def put(self, name, data):
        self._turn()
        self._inner.put(name, data)

    def read(self, name, start=0, length=None):
        self._turn()
        return self._inner.read(name, start, length)

    def list_folder(self, folder="", *, deep=False):
        self._turn()
        return self._inner.list_folder(folder, deep=deep)

    def delete(self, name):
        self._turn()
        self._inner.delete(name)


class _Claimer(threading.Thread):
    def __init__(self, inner: Storage, number: int) -> None:
        super().__init__(daemon=True)
        self.storage = _Stepped(inner)
        self.token = f"{number:08x}"
        self.claim: Claim | None = None
        self.start()

    def run(self) -> None:
        self.claim, _ = make_claim(self.storage, self.token, {}, sleep=lambda _: None)
        self.storage.waits.release()

    def step(self) -> None:
        """Lets one call happen and returns when the next one waits, or the claim is made."""
        self.storage.may.release()
        self.storage.waits.acquire()


@given(order=st.lists(st.integers(0, 2), max_size=60))
@settings(deadline=None, max_examples=examples(150))
def test_no_two_claimers_get_one_number_in_whatever_order_their_calls_come(order):
    memory = _Memory()
    claimers = [_Claimer(memory, number) for number in range(3)]
    for claimer in claimers:
        claimer.storage.waits.acquire()
    for index in order:
        if claimers[index].claim is None:
            claimers[index].step()
    for claimer in claimers:
        while claimer.claim is None:
            claimer.step()
        claimer.join()

    numbers = [claimer.claim.number for claimer in claimers]
    assert len(set(numbers)) == 3
    assert claims_in(memory.list_folder())[-1].number == max(numbers)


def test_many_at_once_on_a_disk_get_different_numbers(tmp_path):
    storage = LocalStorage(tmp_path)
    numbers: list[int] = []
    threads = [
        threading.Thread(target=lambda: numbers.append(make_claim(storage, uuid.uuid4().hex, {})[0].number))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(numbers)) == len(numbers) == 8


def test_a_later_claim_shows_that_an_earlier_one_was_replaced(tmp_path):
    storage = LocalStorage(tmp_path)
    old, nobody = make_claim(storage, "a" * 8, {"host": "one"})
    assert (nobody, successor(storage, old)) == ([], None)

    new, before = make_claim(storage, "b" * 8, {"host": "two"})

    assert before == [old]
    assert read_claim(storage, old) == {"host": "one"}
    assert successor(storage, old) == new
    assert successor(storage, new) is None


def test_a_number_that_is_known_to_be_in_use_is_not_given_again(tmp_path):
    assert make_claim(LocalStorage(tmp_path), "a" * 8, {}, known=[41])[0].number == 42


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("failing", range(3))
def test_who_tries_again_after_an_error_gets_a_number_of_its_own(tmp_path, fault, failing):
    storage = LocalStorage(tmp_path)
    first, _ = make_claim(storage, "a" * 8, {})
    faulty = FaultyStorage(storage, lambda call: fault if call.number == failing else None)
    with pytest.raises(OSError, match="injected"):
        make_claim(faulty, "b" * 8, {})

    second, _ = make_claim(faulty, "b" * 8, {})
    third, _ = make_claim(storage, "c" * 8, {})

    assert first.number < second.number < third.number
    assert [claim.token for claim in claims_in(storage.list_folder())].count("b" * 8) == 1


def test_an_object_that_is_no_claim_is_left_alone(tmp_path):
    storage = LocalStorage(tmp_path)
    storage.put("note.txt", b"")
    claim, _ = make_claim(storage, "a" * 8, {})
    storage.put(str(claim), b"no JSON")

    assert read_claim(storage, claim) is None
    assert read_claim(storage, Claim(9, "f" * 8)) is None
    assert storage.list_folder()[-1].name == "note.txt"
