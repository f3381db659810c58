"""The guarantees of every store, as tests: subclass it, and add a fixture `storage`.

class TestMyStorage(StorageContract):
    @pytest.fixture
    def storage(self): ...
"""

from __future__ import annotations

import threading

import pytest

from storm_on_spark.runtime.storage import Storage, StoredObject, within

_BIG = 9 << 20
"""Larger than the parts of a multipart upload in object stores."""


class StorageContract:
    """Tests of a store, which is new and empty in each test."""

    def test_an_object_has_the_bytes_it_was_made_of(self, storage: Storage) -> None:
        """Any bytes, none, and many."""
        for name, data in {"a": b"", "b/c": bytes(range(256)), "b/d/e": b"x" * _BIG}.items():
            storage.create(name, data)
            assert storage.read(name) == data

    def test_a_range_ends_where_the_object_does(self, storage: Storage) -> None:
        """`start` and `length` as in a slice."""
        storage.create("folder/object", b"0123456789")
        assert storage.read("folder/object", 3, 4) == b"3456"
        assert storage.read("folder/object", 8, 4) == b"89"
        assert storage.read("folder/object", 10, 4) == b""
        assert storage.read("folder/object", 12) == b""
        assert storage.read("folder/object", 7) == b"789"
        assert storage.read("folder/object", 2, 0) == b""

    def test_an_object_that_is_not_there_is_said_to_be_missing(self, storage: Storage) -> None:
        """Holds whether its folder exists or not; a folder is not an object."""
        storage.create("folder/object", b"")
        for name in ("nothing", "folder/nothing", "nothing/nothing"):
            with pytest.raises(FileNotFoundError):
                storage.read(name)

    def test_creating_again_with_the_same_bytes_is_no_error(self, storage: Storage) -> None:
        """The answer to the first attempt may have been lost."""
        storage.create("own", b"bytes")
        storage.create("own", b"bytes")
        assert storage.read("own") == b"bytes"

    def test_put_replaces(self, storage: Storage) -> None:
        """The object is the last one."""
        storage.put("folder/latest", b"a longer one")
        storage.put("folder/latest", b"short")
        assert storage.read("folder/latest") == b"short"

    def test_a_listing_has_what_was_made_and_not_deleted(self, storage: Storage) -> None:
        """Lists in the order of names, with sizes, and deeper objects only on request."""
        for name in ("f/b", "f/a", "f/deep/c", "g/d", "e"):
            storage.create(name, name.encode())
        storage.delete("f/b")
        assert storage.list_folder("f") == [StoredObject("f/a", 3)]
        assert [one.name for one in storage.list_folder("f", deep=True)] == ["f/a", "f/deep/c"]
        assert [one.name for one in storage.list_folder()] == ["e"]
        assert [one.name for one in storage.list_folder(deep=True)] == ["e", "f/a", "f/deep/c", "g/d"]
        assert storage.list_folder("nothing") == []
        assert storage.list_folder("nothing/at/all", deep=True) == []

    def test_a_folder_whose_name_begins_alike_is_another(self, storage: Storage) -> None:
        """Prefixes are not folders."""
        storage.create("spouts/1/a", b"")
        storage.create("spouts/11/b", b"")
        assert [one.name for one in storage.list_folder("spouts/1")] == ["spouts/1/a"]

    def test_deleting_twice_is_no_error(self, storage: Storage) -> None:
        """Deleting an object that never existed is not an error either."""
        storage.create("f/a", b"1")
        storage.delete("f/a")
        storage.delete("f/a")
        storage.delete("nothing/at/all")
        assert storage.list_folder("f") == []
        with pytest.raises(FileNotFoundError):
            storage.read("f/a")

    def test_a_folder_is_deleted_with_those_below_it(self, storage: Storage) -> None:
        """And not those whose names begin alike; a missing one is no error."""
        for name in ("f/a", "f/deep/c", "fa/b", "g"):
            storage.create(name, b"1")
        storage.delete_folder("f")
        storage.delete_folder("nothing")
        assert [one.name for one in storage.list_folder(deep=True)] == ["fa/b", "g"]
        storage.create("f/new", b"2")
        assert storage.list_folder("f") == [StoredObject("f/new", 1)]

    def test_a_name_that_some_stores_refuse_is_refused_by_all(self, storage: Storage) -> None:
        """No name leads out of the store's folder."""
        for name in ("", "/a", "a/", "a//b", "..", "a/../b", ".hidden", "a b", "a\\b", "\u00e4", "a" * 201):
            with pytest.raises(ValueError, match="not an object's name"):
                storage.create(name, b"")
            with pytest.raises(ValueError, match="not an object's name"):
                storage.read(name)

    def test_a_folder_is_a_store(self, storage: Storage) -> None:
        """Names begin at the folder."""
        inner = within(within(storage, "one"), "two")
        inner.create("deep/a", b"12")
        inner.put("b", b"3")
        assert inner.list_folder() == [StoredObject("b", 1)]
        assert inner.list_folder(deep=True) == [StoredObject("b", 1), StoredObject("deep/a", 2)]
        assert storage.read("one/two/deep/a") == inner.read("deep/a") == b"12"
        inner.delete("b")
        assert storage.list_folder("one/two") == []

    def test_readers_see_all_of_an_object_or_nothing(self, storage: Storage) -> None:
        """While several writers replace it."""
        contents = [bytes([number]) * (1 << 18) for number in range(3)]
        storage.put("shared", contents[0])
        wrong: list[object] = []
        done = threading.Event()

        def write(content: bytes) -> None:
            try:
                for _ in range(8):
                    storage.put("shared", content)
            except OSError as error:
                wrong.append(error)

        def look() -> None:
            while not done.is_set():
                seen = storage.read("shared")
                if seen not in contents:
                    wrong.append((len(seen), set(seen)))

        reader = threading.Thread(target=look)
        writers = [threading.Thread(target=write, args=(content,)) for content in contents]
        for thread in (reader, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        reader.join()
        assert wrong == []
