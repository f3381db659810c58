from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.cluster.code.checksums import MAX_BYTES
from storm_on_spark.cluster.errors import CodeError, LimitError
from storm_on_spark.cluster.nimbus.accepting.inbox import MAX_SUBMISSIONS, Inbox

KEY = "0" * 32


def put(inbox: Inbox, key: str, name: str, content: bytes) -> None:
    with inbox.receiving(key, name) as receiver:
        receiver.write(content)
        receiver.finish()


def test_an_artifact_appears_complete_or_not_at_all(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox", 60)
    with inbox.receiving(KEY, "code.zip") as receiver:
        receiver.write(b"ab")
        assert not (tmp_path / "inbox" / KEY / "code.zip").exists()
        receiver.write(b"c")
        info = receiver.finish()
    assert (info.name, info.size, info.sha256) == ("code.zip", 3, hashlib.sha256(b"abc").hexdigest())
    with inbox.receiving(KEY, "conf.json") as receiver:
        receiver.write(b"half")
    with inbox.using(KEY) as folder:
        assert [path.name for path in folder.iterdir()] == ["code.zip"]
        assert (folder / "code.zip").read_bytes() == b"abc"
    put(inbox, KEY, "code.zip", b"new")
    with inbox.using(KEY) as folder:
        assert (folder / "code.zip").read_bytes() == b"new", "sent again, the last counts"


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox", 60)
    put(inbox, KEY, "conf.json", b"{}")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "inbox", tmp_path / "inbox" / KEY)]
    assert modes == [0o700, 0o700]
    assert stat.S_IMODE((tmp_path / "inbox" / KEY / "conf.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("key", ["", "..", "../../etc", "0" * 31, "0" * 33, "G" * 32, "0" * 31 + "/"])
def test_keys_are_no_paths(tmp_path: Path, key: str) -> None:
    inbox = Inbox(tmp_path / "inbox", 60)
    with pytest.raises(ConfigError, match="is not the key of a submission"):
        put(inbox, key, "code.zip", b"x")
    with pytest.raises(ConfigError):
        inbox.remove(key)


@pytest.mark.parametrize("name", ["", "x.zip", "../code.zip", "code.zip/", ".."])
def test_artifacts_are_those_that_there_are(tmp_path: Path, name: str) -> None:
    with pytest.raises(CodeError, match="there is no artifact"):
        put(Inbox(tmp_path / "inbox", 60), KEY, name, b"x")


def test_limits(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox", 60)
    limit = MAX_BYTES["topology.json"]
    with pytest.raises(LimitError, match=r"^topology\.json has more than the 1,048,576 bytes that it may have$"):
        put(inbox, KEY, "topology.json", b"x" * (limit + 1))
    inbox.remove(KEY)
    for number in range(MAX_SUBMISSIONS):
        put(inbox, f"{number:032x}", "conf.json", b"{}")
    with pytest.raises(LimitError, match="64 submissions already wait in the inbox"):
        put(inbox, f"{MAX_SUBMISSIONS:032x}", "conf.json", b"{}")
    put(inbox, f"{0:032x}", "code.zip", b"more of one that waits")


def test_what_nobody_submits_goes(tmp_path: Path) -> None:
    time = [0.0]
    inbox = Inbox(tmp_path / "inbox", 60, now=lambda: time[0])
    put(inbox, KEY, "conf.json", b"{}")
    put(inbox, "1" * 32, "conf.json", b"{}")
    time[0] = os.stat(tmp_path / "inbox" / KEY).st_mtime + 59
    inbox.expire()
    assert (tmp_path / "inbox" / KEY).exists()
    time[0] += 5
    with inbox.using(KEY):
        inbox.expire()
        inbox.remove(KEY)
        assert [path.name for path in (tmp_path / "inbox").iterdir()] == [KEY], "what is in use stays"
    inbox.expire()
    assert not list((tmp_path / "inbox").iterdir())
