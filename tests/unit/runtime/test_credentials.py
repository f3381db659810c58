"""Spouts and bolts are given credentials before anything else and between tuples, and save none of them."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from stormtest import Spouts, ids, rows, solo

from storm_on_spark.api import BaseBasicBolt, BaseRichBolt, BaseRichSpout, Credentials, Fields, ICredentialsListener
from storm_on_spark.api.errors import ComponentError
from storm_on_spark.runtime.processes import credentials as module
from storm_on_spark.runtime.processes.credentials import VARIABLE, Known, Published, read_credentials
from storm_on_spark.runtime.run.settings import SpoutSettings
from storm_on_spark.runtime.spouts import messages
from storm_on_spark.runtime.spouts.task_loop import TaskLoop
from storm_on_spark.runtime.state.snapshot import warned_of_secrets
from storm_on_spark.runtime.tracking.ids import root_base

FIRST, SECOND = "first-secret-value", "second-secret-value"


@pytest.fixture
def push(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Mapping[str, str]], None]]:
    """Pushes credentials to this process, which looks at once."""
    path = tmp_path / "credentials.json"
    monkeypatch.setattr(module, "_known", Known(path))
    monkeypatch.setattr(module, "_LOOK_SECS", 0.0)
    published = Published(path)
    yield lambda wanted: assert_changed(published.set(wanted))
    assert not path.exists() or path.stat().st_mode & 0o777 == 0o600


def assert_changed(changed: bool) -> None:
    assert changed


class Bolt(BaseRichBolt, ICredentialsListener):
    """Notes what is called, and keeps credentials in all the ways that people do."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def set_credentials(self, credentials):
        self.calls.append(dict.fromkeys(credentials, "given"))
        self.credentials, self.copied, self.token = credentials, dict(credentials), credentials.get("token")

    def prepare(self, conf, context, collector):
        self.calls.append("prepare")
        self.collector, self.count, self.seen = collector, 0, []

    def execute(self, tup):
        self.count += 1
        self.seen.append(self.token is not None and len(self.token))
        if tup[0] == "poison":
            raise ValueError("poison")
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("value"))


def test_a_bolt_gets_them_before_prepare_and_between_executions_when_they_change(push: Any) -> None:
    push({"token": FIRST})
    task = solo(Bolt())
    bolt = task.instance
    assert bolt.calls == [{"token": "given"}, "prepare"]
    task.execute([rows([("a",)])], ids(), 1)
    task.execute([rows([("a",)])], ids(), 2)
    assert len(bolt.calls) == 2
    push({"token": SECOND, "other": "x"})
    task.execute([rows([("a",)])], ids(), 3)
    assert bolt.calls[2:] == [{"token": "given", "other": "given"}]
    assert bolt.seen == [len(FIRST), len(FIRST), len(SECOND)]
    push({})
    task.execute([rows([("a",)])], ids(), 4)
    assert bolt.calls[3:] == [{}]
    assert bolt.seen[3] is False


def test_poison_and_restores_leave_a_bolt_with_the_newest(push: Any) -> None:
    push({"token": FIRST})
    task = solo(Bolt())
    task.execute([rows([("a",)])], ids(), 1)
    before = task.snapshot
    assert before is not None
    push({"token": SECOND})
    execution = task.execute([rows([("a",), ("poison",), ("a",)])], ids(), 2)
    assert execution.failed == 1
    assert task.instance.seen == [len(FIRST), len(SECOND), len(SECOND)]
    assert task.instance.token == task.instance.copied["token"] == task.instance.credentials["token"] == SECOND
    task.restore(before)
    assert task.instance.count == 1
    assert task.instance.token == task.instance.credentials["token"] == SECOND


def test_a_snapshot_holds_no_value_that_was_ever_given(push: Any) -> None:
    push({"token": FIRST})
    task = solo(Bolt())
    task.instance.__dict__["nested"] = [task.instance.credentials]
    kept = [task.take()]
    task.execute([rows([("a",)])], ids(), 1)
    former = task.instance.token
    push({"token": SECOND})
    task.execute([rows([("a",)])], ids(), 2)
    task.instance.__dict__["former"] = former
    kept += [task.snapshot, task.take()]
    for snapshot in kept:
        assert snapshot is not None
        assert FIRST.encode() not in snapshot
        assert SECOND.encode() not in snapshot
    # What is no secret is saved.
    task.execute([rows([("a",)])], ids(), 3)
    count, last = task.instance.count, task.snapshot
    assert last is not None
    again = solo(Bolt())
    again.restore(last)
    assert again.instance.count == count
    assert again.instance.token == SECOND


def test_an_attribute_that_only_equals_a_credential_is_warned_of_once(
    push: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Own(Bolt):
        def execute(self, tup):
            self.region = FIRST
            self.regions = {"here": FIRST}
            super().execute(tup)

    warned_of_secrets.clear()
    push({"token": FIRST})
    task = solo(Own())
    assert caplog.text == ""  # what `set_credentials` assigns is meant to be left out
    for number in (1, 2):
        task.execute([rows([("a",)])], ids(), number)
        taken = task.snapshot
        assert FIRST.encode() not in taken
    said = [record.getMessage() for record in caplog.records]
    assert sorted(text.partition(" of ")[0] for text in said) == ["attribute 'region'", "attribute 'regions'"]
    assert FIRST not in caplog.text
    restored = solo(Own())
    restored.restore(taken)
    assert not hasattr(restored.instance, "region")
    assert (restored.instance.count, restored.instance.token) == (2, FIRST)


def test_without_a_push_it_is_given_none_and_others_are_left_alone() -> None:
    bolt = solo(Bolt()).instance
    assert bolt.calls == [{}, "prepare"]

    class Same(BaseBasicBolt):
        def set_credentials(self, credentials):
            raise AssertionError("it is no listener")

        def execute(self, tup, collector):
            pass

    solo(Same()).execute([rows([("a",)])], ids(), 1)


def test_an_exception_names_the_task_and_hides_the_value(push: Any) -> None:
    class Wrong(Bolt):
        def set_credentials(self, credentials):
            if credentials:
                raise ValueError(f"no account for {credentials['token']}")

    task = solo(Wrong())
    push({"token": FIRST})
    with pytest.raises(ComponentError) as caught:
        task.execute([rows([("a",)])], ids(), 1)
    error = caught.value
    assert str(error) == 'component "bolt" (task 1) failed in set_credentials: ValueError: no account for <credential>'
    assert "no account for <credential>" in error.cause_text
    assert FIRST not in error.cause_text + error.own_trace
    assert error.__suppress_context__


class Spout(BaseRichSpout, ICredentialsListener):
    """Emits numbers, and notes what is called."""

    def set_credentials(self, credentials):
        self.calls = [*getattr(self, "calls", []), dict.fromkeys(credentials, "given")]
        self.token = credentials.get("token")

    def open(self, conf, context, collector):
        self.collector, self.next = collector, 0
        self.calls.append("open")

    def next_tuple(self):
        self.calls.append(("next", self.token == SECOND))
        self.collector.emit([self.next], message_id=self.next)
        self.next += 1

    def ack(self, message_id):
        self.calls.append(("ack", self.token == SECOND))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


def test_a_spout_gets_them_before_open_before_it_emits_and_before_it_is_acked(push: Any, tmp_path: Path) -> None:
    push({"token": FIRST})
    spouts = Spouts(Spout(), tmp_path / "log", {"topology.max.spout.pending": 1})
    task = spouts.open()
    loop = TaskLoop(task, spouts.worker.wiring.settings(SpoutSettings, "spout"), lambda message: None, 0)
    spout: Any = task.spout
    assert spout.calls == [{"token": "given"}, "open"]
    loop.burst(True)
    assert spout.calls[2:] == [("next", False)]
    push({"token": SECOND})
    # It may not emit, so that the next thing that is called of it is `ack`.
    loop.handle(messages.Acked(task.task, [root_base(task.task) + task.pending.following - 1]))
    assert spout.calls[3:] == [{"token": "given"}, ("ack", True)]
    task.cut()
    snapshot = task.log.snapshot()
    assert FIRST.encode() not in snapshot
    assert SECOND.encode() not in snapshot
    opened: Any = spouts.open().spout
    assert opened.next == 1
    assert opened.token == SECOND
    assert opened.calls[-1] == {"token": "given"}


def test_the_mapping_shows_nothing_and_is_not_saved() -> None:
    given = Credentials({"token": FIRST, "user": "ann"})
    assert repr(given) == str(given) == f"{given}" == "<2 credentials>"
    assert (given["user"], len(given), list(given)) == ("ann", 2, ["token", "user"])
    assert given == {"token": FIRST, "user": "ann"}
    assert FIRST.encode() not in pickle.dumps(given)
    assert copy.copy(given) is copy.deepcopy(given) is given
    with pytest.raises(KeyError, match="there is no credential 'nothing'; there are 2"):
        given["nothing"]
    with pytest.raises(TypeError):
        given["token"] = "x"  # type: ignore[index]


def test_the_file_is_looked_at_twice_a_second_and_only_the_users_own_counts(tmp_path: Path) -> None:
    path, now = tmp_path / "credentials.json", [0.0]
    known, published = Known(path, lambda: now[0]), Published(path)
    assert not published.set({})
    assert not path.exists()
    nothing = known.now()
    assert not nothing
    assert published.set({"token": FIRST})
    assert not published.set({"token": FIRST})
    assert known.now() is nothing
    now[0] = 1.0
    assert known.now() == {"token": FIRST}
    path.chmod(0o640)
    path.write_text('{"token": "of somebody else"}')
    now[0] = 2.0
    assert known.now() == {"token": FIRST}
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text('{"token": "of somebody else"}')
    (tmp_path / "elsewhere").chmod(0o600)
    now[0] = 3.0
    assert known.now() == {"token": FIRST}
    path.unlink()
    path.write_text("damaged")
    path.chmod(0o600)
    now[0] = 4.0
    assert known.now() == {"token": FIRST}
    published.remove()
    published.remove()
    assert not path.exists()


@pytest.mark.parametrize("data", [b"", b"[]", b'{"a": 10}', b'{"a": null}', b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_refused_and_not_shown(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^credentials: expected an object, name -> text$"):
        read_credentials(data)


def test_another_process_learns_the_path_and_nothing_else_from_its_environment(tmp_path: Path) -> None:
    path = tmp_path / "credentials.json"
    Published(path).set({"token": FIRST})
    program = (
        "import json, os; from storm_on_spark.runtime.processes.credentials import known; now = known().now(); "
        "print(json.dumps([len(now['token']), repr(now), [v for v in os.environ.values() if now['token'] in v]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, VARIABLE: str(path)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout) == [len(FIRST), "<1 credential>", []]
