from __future__ import annotations

import pickle
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from lengths import examples

from storm_on_spark.cluster.errors import LimitError, RecordError
from storm_on_spark.cluster.pacemaker.heartbeats import Heartbeats, Quota, checked_path
from storm_on_spark.cluster.pacemaker.messages import Pulse

names = st.sampled_from(["a", "b", "ab"])
paths = st.lists(names, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
owners = st.sampled_from(["x", "y"])


def at_or_below(key: str, path: str) -> bool:
    return key == path or key.startswith(f"{path}/")


class AgainstADict(RuleBasedStateMachine):
    """The map and its index against a plain dict that is searched."""

    def __init__(self) -> None:
        super().__init__()
        self.beats = Heartbeats(expiry=10)
        self.model: dict[str, tuple[bytes | None, str, float]] = {}
        self.now = 0.0

    @rule(path=paths, value=st.binary(max_size=3), owner=owners)
    def put(self, path: str, value: bytes, owner: str) -> None:
        self.beats.put(path, value, owner, self.now)
        self.model[path] = (value, owner, self.now)

    @rule(path=paths, owner=owners)
    def create(self, path: str, owner: str) -> None:
        self.beats.create(path, owner, self.now)
        self.model.setdefault(path, (None, owner, self.now))

    @rule(path=paths)
    def delete(self, path: str) -> None:
        assert self.beats.delete(path) == (self.model.pop(path, None) is not None)

    @rule(path=paths | st.just(""))
    def delete_all(self, path: str) -> None:
        gone = [key for key in self.model if at_or_below(key, path)]
        assert self.beats.delete_all(path) == len(gone)
        for key in gone:
            del self.model[key]

    @rule(secs=st.integers(1, 12))
    def time_passes(self, secs: int) -> None:
        self.now += secs
        gone = [key for key, (_, _, at) in self.model.items() if self.now - at >= 10]
        assert self.beats.expire(self.now) == len(gone)
        for key in gone:
            del self.model[key]

    @rule(path=paths | st.just(""))
    def read(self, path: str) -> None:
        below = {key[len(path) + 1 :].split("/")[0] for key in self.model if key.startswith(f"{path}/")}
        assert sorted(self.beats.children(path)) == sorted(below)
        assert self.beats.exists(path) == any(at_or_below(key, path) for key in self.model)
        assert self.beats.get(path) == self.model.get(path, (None,))[0]
        found = {each.id: each.details for each in self.beats.pulses(path)}
        assert found == {
            key: value for key, (value, _, _) in self.model.items() if at_or_below(key, path) and value is not None
        }

    @invariant()
    def counts(self) -> None:
        assert len(self.beats) == len(self.model)
        keys = {owner: sum(each == owner for _, each, _ in self.model.values()) for owner in "xy"}
        assert {owner: count for owner, (count, _) in self.beats.owners().items()} == {
            owner: count for owner, count in keys.items() if count
        }
        assert self.beats.size == sum(size for _, size in self.beats.owners().values())
        if not self.model:
            assert pickle.dumps(self.beats) == pickle.dumps(Heartbeats(expiry=10)), "something of them is left"


TestAgainstADict = AgainstADict.TestCase
TestAgainstADict.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)


def test_a_client_keeps_so_many_paths_and_bytes_and_may_write_its_own_again() -> None:
    beats = Heartbeats(Quota(keys=2, client_bytes=3000, all_bytes=4000))
    beats.put("/a", b"1" * 900, "x", 0)
    beats.put("/b", b"1" * 900, "x", 0)
    with pytest.raises(LimitError, match="at most 2 paths"):
        beats.put("/c", b"", "x", 0)
    with pytest.raises(LimitError, match="at most 3,000 bytes"):
        beats.put("/b", b"1" * 2000, "x", 0)
    with pytest.raises(LimitError, match="all clients together keep at most 4,000 bytes"):
        beats.put("/c", b"1" * 1000, "y", 0)
    beats.put("/b", b"2" * 900, "x", 1)
    beats.put("/b", b"3", "x", 1)
    beats.put("/c", b"1" * 500, "y", 0)
    assert beats.get("/b") == b"3"
    assert beats.children("") == ["a", "b", "c"]


def test_deep_paths_count_for_what_they_take() -> None:
    """Each part of a path that is not another's, too, has its own index."""
    tracemalloc.start()
    try:
        beats = Heartbeats()
        for number in range(50):
            beats.put(checked_path(f"/{number:04}" + "/a" * 509), b"", "x", 0)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 2 * beats.size


def test_a_path_without_a_value_has_no_pulse() -> None:
    beats = Heartbeats()
    beats.create("/a", "x", 0)
    assert beats.exists("/a")
    assert beats.get("/a") is None
    assert list(beats.pulses("")) == []
    beats.put("/a", b"1", "x", 0)
    beats.create("/a", "x", 0)
    assert list(beats.pulses("")) == [Pulse("/a", b"1")]


@pytest.mark.parametrize(
    "path",
    ["", "a", "/", "//", "/a//b", "/a/../b", "/.", "/a/.", "/a\0", "/a\nb", "/" + "a" * 1024, "/" + "é" * 600, 7, None],
)
def test_what_is_no_path_is_refused(path: object) -> None:
    with pytest.raises(RecordError):
        checked_path(path)


@given(paths)
def test_a_slash_at_the_end_is_left_out(path: str) -> None:
    assert checked_path(path) == checked_path(path + "/") == checked_path(path, root=True) == path
    assert checked_path("/", root=True) == checked_path("", root=True) == ""
    assert checked_path("/..a/.b.") == "/..a/.b."
