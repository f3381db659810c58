"""Following a log: what is shown of it while it grows, is replaced, moves and goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.cli.cluster.watching.logs import Tail
from storm_on_spark.cluster.client.answers import KeptLog, LogPart
from storm_on_spark.cluster.errors import UnavailableError
from storm_on_spark.cluster.supervisor.logs import read_part

ID = "words-1-1000"


class Cluster:
    """Logs on this disk; everything that happens does so while the follower sleeps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host: str | None = "a"
        self.kept: str | None = None
        self.away = False
        self.time = 0.0
        self.events: list[Callable[[], Any]] = []

    def write(self, data: bytes, host: str = "a", *, replace: bool = False) -> None:
        path = self.folder / host / ID / "6700" / "worker.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb" if replace else "ab") as file:
            file.write(data)

    def topology(self, name: str) -> dict[str, str]:
        if self.host is None:
            raise NotAliveError(f"there is no topology {name!r}")
        return {"logLink": self.host}

    def log(self, link: str, start: int, length: int = 1 << 20) -> LogPart:
        if self.away:
            raise UnavailableError("the supervisor doesn't answer")
        data, first, size = read_part(self.folder / link, f"{ID}/6700/worker.log", start, length)
        return LogPart(data=data, start=first, size=size)

    def kept_logs(self, topology: str) -> list[KeptLog]:
        if self.kept is None:
            return []
        ids = [f"words-{number}-1000" for number in (1, 0)]
        return [KeptLog(topology_id=each, link=self.kept, host="h", port=6700, modified=1.7e9) for each in ids]

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        if self.events:
            self.events.pop(0)()

    def follow(self, lines: int = 10) -> tuple[str, list[str]]:
        """Returns what is shown, and what is said, until the events are over and the topology is gone."""
        self.events.append(lambda: setattr(self, "host", None))
        told: list[str] = []
        tail = Tail(self, "words", lines, told.append, self.sleep, lambda: self.time)  # type: ignore[arg-type]
        return "".join(tail.blocks(follow=True)), told


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_what_is_added_is_shown_once(cluster: Cluster) -> None:
    cluster.write(b"1\n2\n3\n")
    cluster.events = [lambda: cluster.write(b"4\n5"), lambda: cluster.write(b"6\n")]
    assert cluster.follow(lines=2) == ("2\n3\n4\n56\n", ["words is gone."])


def test_a_character_that_comes_in_two_parts_is_one(cluster: Cluster) -> None:
    cluster.write("ä".encode()[:1])
    cluster.events = [lambda: cluster.write("ä".encode()[1:])]
    assert cluster.follow()[0] == "ä"


def test_a_log_that_is_begun_anew_is_shown_from_its_start(cluster: Cluster) -> None:
    cluster.write(b"a long line\n")
    cluster.events = [lambda: cluster.write(b"new\n", replace=True)]
    assert cluster.follow()[0] == "a long line\nnew\n"


def test_a_driver_that_moves_is_followed(cluster: Cluster) -> None:
    cluster.write(b"here\n")
    cluster.write(b"there\n", "b")
    cluster.events = [lambda: setattr(cluster, "host", "b"), *[lambda: None] * 5]
    assert cluster.follow() == ("here\nthere\n", ["The driver of words has moved; its log:", "words is gone."])


def test_a_log_that_is_not_there_yet_is_waited_for(cluster: Cluster) -> None:
    cluster.host = ""
    cluster.events = [lambda: setattr(cluster, "host", "a"), *[lambda: None] * 4, lambda: cluster.write(b"first\n")]
    assert cluster.follow() == ("first\n", ["words is gone."])


def test_a_supervisor_that_is_started_again_is_waited_for(cluster: Cluster) -> None:
    cluster.write(b"1\n")
    cluster.events = [
        lambda: setattr(cluster, "away", True),
        lambda: cluster.write(b"2\n"),
        lambda: setattr(cluster, "away", False),
    ]
    assert cluster.follow()[0] == "1\n2\n"


def test_without_following_what_is_not_there_is_an_error(cluster: Cluster) -> None:
    with pytest.raises(NotAliveError, match="there is no log"):
        list(Tail(cluster, "words", 10).blocks(follow=False))  # type: ignore[arg-type]
    cluster.write(b"1\n2\n")
    assert list(Tail(cluster, "words", 1).blocks(follow=False)) == ["2\n"]  # type: ignore[arg-type]
    cluster.host = ""
    with pytest.raises(NotAliveError, match="words has no log yet"):
        list(Tail(cluster, "words", 10).blocks(follow=False))  # type: ignore[arg-type]


@pytest.mark.parametrize("follow", [False, True])
def test_after_a_kill_the_last_log_is_shown(cluster: Cluster, follow: bool) -> None:
    cluster.write(b"1\n2\nthe reason\n")
    cluster.host, cluster.kept = None, "a"
    told: list[str] = []
    tail = Tail(cluster, "words", 2, told.append, cluster.sleep, lambda: cluster.time)  # type: ignore[arg-type]
    assert "".join(tail.blocks(follow)) == "2\nthe reason\n"
    assert told[0].startswith("words-1-1000 no longer exists. Its last log, on h (slot 6700), ends at 2023-11-1")
    assert told[1:] == ["There are also logs of words-0-1000; give the id to see those."]


def test_of_one_that_never_was_nothing_is_kept(cluster: Cluster) -> None:
    cluster.host = None
    tail = Tail(cluster, "words", 2, print, cluster.sleep, lambda: cluster.time)  # type: ignore[arg-type]
    with pytest.raises(NotAliveError, match="there is no topology 'words', and no host has kept logs of it"):
        list(tail.blocks(follow=False))
