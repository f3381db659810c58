"""A topology that has state starts on that, or on none when it is told to; never on something else without a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.cluster.driver.state_rule import judge
from storm_on_spark.cluster.records import CheckpointInfo
from storm_on_spark.spark.checkpoint.directory import VERSION, Found, clear_checkpoint, found_in

KNOWN = CheckpointInfo(topology_id="t-1-1", location="/c", identity="t-ab", launch=1, host="a")


def made(folder: Path, name: str = "t", identity: str = "t-ab", commits: int = 3) -> Path:
    (folder / "storm" / "spouts" / "1").mkdir(parents=True)
    manifest = {"version": VERSION, "name": name, "storm_id": identity, "partitions": 1, "fingerprint": {}}
    (folder / "storm" / "manifest.json").write_text(json.dumps(manifest))
    for kind in ("owner.json", "owner.lock", "lock"):
        (folder / "storm" / kind).write_text("{}")
    for kind in ("commits", "offsets", "state"):
        (folder / kind).mkdir()
    for number in range(commits):
        (folder / "commits" / str(number)).touch()
        (folder / "commits" / f".{number}.crc").touch()
    (folder / "metadata").touch()
    (folder / "notes.txt").write_text("mine")
    return folder


@pytest.mark.parametrize(
    ("known", "launch", "found", "what", "says"),
    [
        (None, 1, Found(), "go on", ""),
        (None, 1, Found("t-zz", "t", True), "go on", ""),
        (KNOWN, 1, Found("t-ab", "t", True), "go on", ""),
        (KNOWN, 2, Found(), "refuse", "On host b there is nothing at /here"),
        (KNOWN, 2, Found("t-ab", "t"), "refuse", "what it had committed is gone from /here"),
        (KNOWN, 2, Found("t-zz", "t", True), "refuse", "/here holds another checkpoint, t-zz of topology 't'"),
        (KNOWN, 2, Found("u-zz", "u", True), "refuse", "u-zz of topology 'u'"),
        ("asked", 1, Found(), "refuse", "there is nothing"),
        ("asked", 2, Found(), "start from scratch", ""),
        ("asked", 3, Found("t-zz", "t", True), "start from scratch", ""),
        ("forgot", 2, Found(), "go on", ""),
    ],
)
def test_what_a_driver_does_about_what_it_finds(known, launch: int, found: Found, what: str, says: str) -> None:
    if known == "asked":
        known = CheckpointInfo(topology_id="t", location="/c", identity="t-ab", launch=1, host="a", from_scratch=2)
    elif known == "forgot":
        known = CheckpointInfo(topology_id="t", location="/c", identity="", launch=2, host="a")
    verdict = judge(known, launch, found, "/here", "b", "t")
    assert verdict.do == what
    assert says in verdict.reason
    if what == "refuse":
        assert "topology 't' has state: checkpoint t-ab, at /c of host a" in verdict.reason
        assert "`storm-spark rebalance t --wait 0 --from-scratch`" in verdict.reason


def test_what_is_found(tmp_path: Path) -> None:
    assert found_in(tmp_path / "nothing") == Found()
    assert not (tmp_path / "nothing").exists()
    assert found_in(made(tmp_path / "a")) == Found("t-ab", "t", True)
    assert found_in(made(tmp_path / "b", commits=0)) == Found("t-ab", "t", False)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "metadata").touch()
    with pytest.raises(CheckpointError, match="another Spark query"):
        found_in(tmp_path / "c")


def test_only_state_is_removed_and_only_ones_own(tmp_path: Path) -> None:
    folder = made(tmp_path / "a")
    with pytest.raises(CheckpointError, match="belongs to topology 't', not to 'u'"):
        clear_checkpoint(folder, "u")
    assert found_in(folder).committed
    clear_checkpoint(folder, "t")
    left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    assert left == ["notes.txt", "storm", "storm/lock", "storm/owner.json", "storm/owner.lock"]
    clear_checkpoint(folder, "t")
    (folder / "storm" / "manifest.json").write_text("{")
    clear_checkpoint(folder, "t")
    assert found_in(folder) == Found()
    (folder / "metadata").touch()
    with pytest.raises(CheckpointError, match="another Spark query"):
        clear_checkpoint(folder, "t")
