"""Sinks of instances that write elsewhere: each message is there once, whenever the instance dies."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from lengths import PATIENCE_SECS

from storm_on_spark.api.errors import CheckpointError, InvalidTopologyError
from storm_on_spark.connectors.frames import ForeachBatchBolt
from storm_on_spark.xd.bus.journal import Journal, Message, Record
from storm_on_spark.xd.bus.local import LocalBus
from storm_on_spark.xd.bus.port import ModuleFeed, Place
from storm_on_spark.xd.container import instance as instances
from storm_on_spark.xd.container.chain import Chain
from storm_on_spark.xd.container.errors import ExecuteError
from storm_on_spark.xd.container.instance import Instance
from storm_on_spark.xd.modules import find_module

Kind = Literal["delta", "jdbc"]
_KINDS = pytest.mark.parametrize("kind", ["delta", "jdbc"])


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "_FIRST_RETRY_SECS", 0.02)
    monkeypatch.setattr(instances, "_MOST_RETRY_SECS", 0.1)


def _make_table(folder: Path, kind: Kind) -> None:
    """Makes a table that refuses "bad"."""
    if kind == "delta":
        DeltaTable.create(folder / "t", pa.schema([("payload", pa.string())])).alter.add_constraint(
            {"good": "payload <> 'bad'"}
        )
    else:
        with contextlib.closing(sqlite3.connect(folder / "d")) as database:
            database.execute("CREATE TABLE t (payload CHECK (payload <> 'bad'))")


def _rows(folder: Path, kind: Kind) -> list[str]:
    if kind == "delta":
        return DeltaTable(folder / "t").to_pyarrow_table()["payload"].to_pylist()
    with contextlib.closing(sqlite3.connect(folder / "d")) as database:
        return [row for (row,) in database.execute("SELECT payload FROM t")]


def _sink(folder: Path, kind: Kind) -> Any:
    options = {"table": str(folder / "t")} if kind == "delta" else {"database": str(folder / "d"), "table": "t"}
    return find_module("sink", kind).make(options, "s")


def _instance(folder: Path, make: Callable[[], Any]) -> Instance:
    place = Place("s", "out", input=ModuleFeed("s", "in"))
    return Instance("out.1", lambda: Chain([("out", make())], "s.out.1"), LocalBus(folder, most_bytes=1 << 30), place)


def _emit(folder: Path, *payloads: str) -> None:
    journal = Journal(folder / "s" / "in" / "1")
    journal.append(journal.last() + 1, Record(tuple(Message(payload, {"h": payload}) for payload in payloads)))


def _until(true: Callable[[], object]) -> None:
    limit = time.monotonic() + PATIENCE_SECS
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.01)


def _letters(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((folder / "s/out/1/dead-letters").glob("*.json"))]


def _killed(folder: Path, kind: Kind, where: str) -> None:
    """Runs an instance in a child that kills itself at the sink's write: before it, or after it."""
    # No fork: deltalake has threads.
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, __file__, str(folder), kind, where], env=paths, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


def _run_and_die(folder: Path, kind: Kind, where: str) -> None:
    def die(*given: object, **named: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    sink = _sink(folder, kind)
    write = sink.write
    if where == "before the write":
        sink.write = die
    else:
        sink.write = lambda written, context: (write(written, context), die())
    instance = _instance(folder, lambda: sink)
    instance.start()
    time.sleep(PATIENCE_SECS)


@_KINDS
@pytest.mark.parametrize("where", ["before the write", "after the write"])
def test_a_step_that_is_interrupted_is_written_once(tmp_path: Path, kind: Kind, where: str) -> None:
    _make_table(tmp_path, kind)
    _emit(tmp_path, "a", "b")
    _killed(tmp_path, kind, where)
    assert bool(_rows(tmp_path, kind)) == (where == "after the write")
    # The next process finds another step: more messages are there.
    _emit(tmp_path, "c")
    instance = _instance(tmp_path, lambda: _sink(tmp_path, kind))
    instance.start()
    _until(lambda: "c" in _rows(tmp_path, kind))
    instance.stop()
    assert sorted(_rows(tmp_path, kind)) == ["a", "b", "c"]
    assert _letters(tmp_path) == []


@_KINDS
@pytest.mark.parametrize("where", ["never", "before the write"])
def test_a_refused_message_alone_is_a_dead_letter_once(tmp_path: Path, kind: Kind, where: str) -> None:
    _make_table(tmp_path, kind)
    _emit(tmp_path, "a", "bad", "b", "bad")
    if where != "never":
        _killed(tmp_path, kind, where)
    instance = _instance(tmp_path, lambda: _sink(tmp_path, kind))
    instance.start()
    _until(lambda: "b" in _rows(tmp_path, kind) and len(_letters(tmp_path)) >= 2)
    instance.stop()
    assert sorted(_rows(tmp_path, kind)) == ["a", "b"]
    letters = _letters(tmp_path)
    assert [(letter["payload"], letter["headers"]) for letter in letters] == [("bad", {"h": "bad"})] * 2
    assert all("constraint" in letter["reason"] for letter in letters)


def test_messages_wait_for_a_database_that_is_away(tmp_path: Path) -> None:
    _make_table(tmp_path, "jdbc")
    instance = _instance(tmp_path, lambda: _sink(tmp_path, "jdbc"))
    instance.start()
    with contextlib.closing(sqlite3.connect(tmp_path / "d")) as database:
        _emit(tmp_path, "a")
        _until(lambda: _rows(tmp_path, "jdbc") == ["a"])
        database.execute("ALTER TABLE t RENAME TO away")
        _emit(tmp_path, "b", "c")
        _until(lambda: Journal(tmp_path / "s/out/1").last() >= 2)
        database.execute("ALTER TABLE away RENAME TO t")
    _until(lambda: _rows(tmp_path, "jdbc") == ["a", "b", "c"])
    instance.stop()
    assert _letters(tmp_path) == []


@_KINDS
def test_an_older_copy_of_the_state_is_refused(tmp_path: Path, kind: Kind) -> None:
    _make_table(tmp_path, kind)
    chain = Chain([("out", _sink(tmp_path, kind))], "s.out.1")
    chain.open([])
    states = []
    for payload in ("a", "b"):
        chain.execute(Message(payload, {}), 1)
        chain.finish()
        states.append(chain.state())
        assert chain.deliver(durable=False) == []
    again = Chain([("out", _sink(tmp_path, kind))], "s.out.1")
    again.open(states[1])
    assert again.deliver(durable=False) == []
    with pytest.raises(CheckpointError, match=r"the checkpoint is the instance's journal on the bus"):
        Chain([("out", _sink(tmp_path, kind))], "s.out.1").open(states[0])
    assert sorted(_rows(tmp_path, kind)) == ["a", "b"]


def test_what_a_step_takes_back_is_not_written(tmp_path: Path) -> None:
    _make_table(tmp_path, "jdbc")
    chain = Chain([("out", _sink(tmp_path, "jdbc"))], "s.out.1")
    chain.open([])
    chain.execute(Message("a", {}), 1)
    chain.forget()
    chain.execute(Message("b", {}), 2)
    chain.finish()
    assert chain.deliver(durable=False) == []
    assert _rows(tmp_path, "jdbc") == ["b"]


def test_a_step_ends_before_its_record_is_too_large_for_the_bus(tmp_path: Path) -> None:
    _make_table(tmp_path, "jdbc")
    chain = Chain([("out", _sink(tmp_path, "jdbc"))], "s.out.1")
    chain.open([])
    for number in range(8):
        assert not chain.full()
        chain.execute(Message(str(number) * (1 << 19), {}), number)
    assert chain.full()
    chain.finish()
    assert not chain.full()
    assert len(chain.state()[0] or b"") < 5 << 20


def test_a_message_that_fits_into_no_record_of_the_bus_fails_alone(tmp_path: Path) -> None:
    _make_table(tmp_path, "jdbc")
    chain = Chain([("out", _sink(tmp_path, "jdbc"))], "s.out.1")
    chain.open([])
    with pytest.raises(
        ExecuteError, match=r"out can't take a message of \d\d,\d+,\d+ bytes: 11,534,336 bytes are the most"
    ):
        chain.execute(Message("x" * (12 << 20), {}), 1)
    chain.execute(Message("a", {}), 2)
    chain.finish()
    assert chain.deliver(durable=False) == []
    assert _rows(tmp_path, "jdbc") == ["a"]


def test_a_sink_that_needs_spark_is_refused() -> None:
    with pytest.raises(InvalidTopologyError, match="a container has none"):
        Chain([("out", ForeachBatchBolt({"payload": "string"}, lambda frame, batch: None))], "s.out.1")


if __name__ == "__main__":
    _run_and_die(Path(sys.argv[1]), sys.argv[2], sys.argv[3])  # type: ignore[arg-type]
