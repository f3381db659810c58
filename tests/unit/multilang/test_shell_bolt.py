"""Bolts in other languages, as real processes, without Spark."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from lengths import PATIENCE_SECS
from waiting import eventually

from storm_on_spark.api.errors import UnusableError
from storm_on_spark.multilang import ShellBolt, ShellError, child
from storm_on_spark.multilang.child import Launch
from storm_on_spark.runtime.processes.sessions import started_at
from storm_on_spark.testing import BoltTester, make_tuple

COMPONENTS = Path(__file__).parent / "components"
NODE = shutil.which("node")
DIES_AFTER_ITS_START = """
import json, os, sys
assert json.loads(sys.stdin.readline())["pidDir"] and sys.stdin.readline() == "end\\n"
print(json.dumps({"pid": os.getpid()}), "end", sep="\\n", flush=True)
sys.stderr.write("no table of words")
os._exit(5)
"""


def shell_bolt(command: list[str], **conf: object) -> BoltTester:
    bolt = ShellBolt(command, ["word"], directory=str(COMPONENTS))
    return BoltTester(bolt, [word("x")], name="count", conf={"topology.multilang.serializer": "json", **conf})


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def word(text: object) -> object:
    return make_tuple([text], ["word"], component="words")


def errors(kit: BoltTester) -> str:
    return "\n".join(error.message for error in kit.collector.ledger.errors)


def until(kit: BoltTester, condition: object) -> None:
    deadline = time.monotonic() + PATIENCE_SECS
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, (kit.collector.emitted, errors(kit))
        kit.execute()


def test_a_shell_script_is_a_bolt() -> None:
    with shell_bolt(["sh", "exclaim.sh"]) as kit:
        kit.execute(*[word(text) for text in ("ant", "bee")])
        assert kit.collector.values() == [("ant!",), ("bee!",)]
        assert [tup["word"] for tup in kit.collector.acked] == ["ant", "bee"]
        assert all(len(emission.anchors) == 1 for emission in kit.collector.emitted)


def test_more_tuples_than_may_wait_and_than_pipes_hold() -> None:
    with shell_bolt(["sh", "exclaim.sh"], **{"topology.shellbolt.max.pending": 2}) as kit:
        kit.execute(*[word("x" * 2000 + str(number)) for number in range(100)])
        assert [len(kit.collector.acked), len(kit.collector.values())] == [100, 100]


@pytest.mark.parametrize("limit", [1, 50])
def test_no_more_messages_wait_for_a_child_than_may(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[int] = []
    send = child.Child.send

    def observed(self: child.Child, data: bytes) -> None:
        send(self, data)
        waiting.append(self.queued)

    monkeypatch.setattr(child.Child, "send", observed)
    with shell_bolt(["sh", "exclaim.sh"], **{"topology.shellbolt.max.pending": limit}) as kit:
        kit.execute(*[word(str(number)) for number in range(200)])
        assert len(kit.collector.acked) == 200
    # Neither more than that, nor are they written one by one where several may wait.
    assert max(waiting) == limit


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_a_node_component_may_answer_late() -> None:
    with shell_bolt(["node", "split.js"]) as kit:
        kit.execute(word("late to the party"), word("be early"))
        until(kit, lambda: len(kit.collector.acked) == 2)
        assert sorted(kit.collector.values()) == sorted([(w,) for w in ["late", "to", "the", "party", "be", "early"]])
        assert errors(kit) == ""


@pytest.mark.parametrize("serializer", ["json", "msgpack"])
def test_an_unmodified_pystorm_bolt(serializer: str) -> None:
    bolt = ShellBolt(python("pystorm_bolt.py", serializer), ["word", "count"], directory=str(COMPONENTS))
    conf = {"topology.multilang.serializer": serializer}
    with BoltTester(bolt, [word("x")], name="count", conf=conf) as kit:
        kit.execute(word("ä"), word("b"))
        # Another worker takes the task: the child and its counts are the same.
        kit.restart()
        kit.execute(word("ä"), word("metric"))
        assert kit.collector.values() == [("ä", 1), ("b", 1), ("ä", 2), ("metric", 1)]
        assert len(kit.collector.acked) == 4
        assert errors(kit) == ""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("die", "it ended, exit code 7; its last lines on stderr:\nabout to die"),
        ("hang", "it was silent for"),
        ("garbage", "it sent what is not JSON: b'hello'"),
        ("unknown", "it sent ack for 'nothing', which it was not given or has settled"),
        ("undeclared", "it emitted what can't be sent"),
        ("stderr", "last words"),
    ],
)
def test_a_child_that_fails_is_reported_and_started_again(how: str, said: str) -> None:
    with shell_bolt(python("bad.py", how), **{"topology.subprocess.timeout.secs": 10 if how != "hang" else 1}) as kit:
        kit.execute(word("good"), word("bad"))
        # It may have been sent on before its child failed; what counts is that all are settled.
        assert [tup["word"] for tup in [*kit.collector.acked, *kit.collector.failed]] == ["good", "bad"]
        assert [tup["word"] for tup in kit.collector.failed][-1:] == ["bad"]
        assert said in errors(kit)
        kit.execute(word("after"))
        assert kit.collector.values()[-1] == ("after",)


REPORTS_ERRORS = """
import sys
from storm import fail, initComponent, readTuple, reportError, sync
initComponent()
held = []
while True:
    tup = readTuple()
    if tup.is_heartbeat_tuple():
        for each in held[1:] + held[:1]:
            reportError("no word: " + each.values[0])
            fail(each)
        held = []
        sync()
    else:
        held.append(tup)
"""


def test_an_error_of_a_child_names_the_tuple_that_it_fails_next() -> None:
    with shell_bolt(python("-c", REPORTS_ERRORS)) as kit:
        kit.execute(word("one"), word("two"), word("three"))
        told = [(error.message, error.input) for error in kit.collector.ledger.errors]
        assert told == [(f"ShellError: no word: {text}", f"('{text}',)") for text in ("two", "three", "one")]


def test_the_death_of_a_child_names_the_tuples_that_it_had() -> None:
    with shell_bolt(python("bad.py", "die")) as kit:
        kit.execute(word("bad"))
        assert [error.input for error in kit.collector.ledger.errors] == ["('bad',)"]


def test_a_child_that_floods_does_not_block_for_ever() -> None:
    with shell_bolt(python("bad.py", "flood"), **{"topology.subprocess.timeout.secs": 1}) as kit:
        started = time.monotonic()
        kit.execute(word("bad"))
        assert time.monotonic() - started < 60
        assert kit.collector.acked == []


def test_a_child_that_floods_and_does_not_read_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "MOST_MESSAGES", 1000)
    with shell_bolt(python("bad.py", "flood"), **{"topology.shellbolt.max.pending": 1}) as kit:
        # More than the pipe holds, so that the bolt waits for the child to read.
        kit.execute(word("bad"), *[word("x" * 60_000) for _ in range(4)])
        assert "it sent more than 1000 messages without reading its input" in errors(kit)
        assert kit.collector.failed[0]["word"] == "bad"


def test_a_child_that_floods_over_many_micro_batches_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "MOST_MESSAGES", 1000)
    with shell_bolt(python("bad.py", "flood"), **{"topology.subprocess.timeout.secs": 1}) as kit:
        kit.execute(word("bad"))
        until(kit, lambda: kit.collector.failed)
        assert "it sent more than 1000 messages without reading its input or saying that it is done" in errors(kit)
        kit.execute(word("after"))
        assert kit.collector.values() == [("after",)]


def test_ticks_are_for_the_child() -> None:
    with shell_bolt(python("bad.py", "none"), **{"topology.tick.tuple.freq.secs": 5}) as kit:
        kit.tick()
        assert kit.collector.values() == [(5,)]
        assert [tup.is_tick for tup in kit.collector.acked] == [True]


def test_nobody_is_started_for_a_turn_without_tuples() -> None:
    with shell_bolt(["/no/such/program"]) as kit:
        kit.execute()
        assert errors(kit) == ""


def test_a_slow_child_is_waited_for() -> None:
    with shell_bolt(python("bad.py", "slow")) as kit:
        kit.execute(word("bad"), word("good"))
        assert kit.collector.values() == [("bad",), ("good",)]


def test_what_a_child_keeps_stays_pending_and_fails_with_it() -> None:
    with shell_bolt(python("bad.py", "keep")) as kit:
        kit.execute(word("bad"), word("good"))
        assert [tup["word"] for tup in kit.collector.acked] == ["good"]
        kit.restart()
        assert kit.collector.failed == []
        child_of(kit, lambda pid: os.kill(pid, 9))
        kit.execute(word("good"))
        assert [tup["word"] for tup in kit.collector.failed] == ["bad"]
        assert [tup["word"] for tup in kit.collector.acked] == ["good", "good"]


def child_of(kit: BoltTester, act: object) -> None:
    kit.execute()
    pid = kit.bolt.pid
    act(pid)  # type: ignore[operator]
    eventually(lambda: started_at(pid) is None)


def test_an_attempt_that_did_not_count_ends_its_child() -> None:
    with shell_bolt(python("bad.py", "keep")) as kit:
        kit.execute(word("bad"))
        before = kit.bolt.__getstate__()["_state"]
        saved = type(before)(**{**vars(before), "pending": dict(before.pending)})
        kit.execute(word("good"))
        kit.bolt.__setstate__({"_state": saved})
        kit.execute(word("good"))
        assert [tup["word"] for tup in kit.collector.failed] == ["bad"]
        assert "an attempt at a micro-batch that is made again" in errors(kit)
        assert [tup["word"] for tup in kit.collector.acked] == ["good", "good"]


@pytest.mark.parametrize(
    ("command", "said", "inputs"),
    [
        (python("bad.py", "start"), "exit code 3; its last lines on stderr:\nno such model", "a"),
        (["/no/such/program"], "exit code 127; its last lines on stderr:\n/no/such/program: No such file or", "abcde"),
        (python("-c", DIES_AFTER_ITS_START), "exit code 5; its last lines on stderr:\nno table of words", "a"),
        (python("-c", DIES_AFTER_ITS_START), "exit code 5; its last lines on stderr:\nno table of words", "abcde"),
    ],
)
def test_children_that_do_not_start_end_the_topology(command: list[str], said: str, inputs: str) -> None:
    with shell_bolt(command) as kit:
        with pytest.raises(UnusableError, match="3 times in a row it has ended without having done anything") as raised:
            kit.execute(*map(word, inputs))
        assert said in str(raised.value)
        assert said in errors(kit)


def test_a_child_that_has_worked_may_die_as_often_as_it_likes() -> None:
    with shell_bolt(python("bad.py", "die")) as kit:
        kit.execute(word("ant"))
        for _ in range(5):
            kit.execute(word("bad"))
        assert len(kit.collector.failed) == 5
        kit.execute(word("bee"))
        assert [tup["word"] for tup in kit.collector.acked] == ["ant", "bee"]


def test_a_child_that_has_ended_before_it_is_looked_at_is_told_of_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    spawn = child._spawn  # noqa: SLF001 # a race that can't be had otherwise

    def spawn_and_wait(launch: Launch, folder: Path) -> None:
        spawn(launch, folder)
        while not (folder / "exit").exists():
            time.sleep(0.01)

    monkeypatch.setattr(child, "_spawn", spawn_and_wait)
    with shell_bolt(["/no/such/program"]) as kit:
        with pytest.raises(UnusableError):
            kit.execute(word("a"))
        assert "of count:1 (/no/such/program): it ended, exit code 127" in errors(kit)


def test_a_value_without_a_form_in_json_fails_its_tuple() -> None:
    with shell_bolt(["sh", "exclaim.sh"]) as kit:
        kit.execute(word(b"bytes"), word(float("nan")), word("fine"))
        assert [tup["word"] for tup in kit.collector.acked] == ["fine"]
        assert "a value of type bytes can't be sent to another process" in errors(kit)


def test_a_command_is_a_list() -> None:
    with pytest.raises(ShellError, match="takes a list of strings"):
        ShellBolt("node split.js", ["word"])
    with pytest.raises(ShellError, match="is not a string"):
        ShellBolt(["node", 1], ["word"])  # type: ignore[list-item]
