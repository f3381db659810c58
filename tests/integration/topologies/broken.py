"""Topologies of which one thing is broken, and the sentence that must say so."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from topologies.parts import Numbers, Tally

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseStatefulBolt,
    BatchBolt,
    CustomStreamGrouping,
    Fields,
    Topology,
    TopologyBuilder,
)

FAIL_FAST = {"topology.fail.fast": True}


@dataclass(frozen=True)
class Broken:
    """One case: what is built, and what the error says."""

    build: Callable[[], Topology]
    sentence: str
    """The whole sentence, with * for what it quotes."""
    conf: dict[str, Any] = field(default_factory=dict)
    raised: str = ""
    """Text of the line of this file that raises; empty if no code of this file does."""


def line(spout: Any = None, bolt: Any = None, grouping: Any = None, tasks: int = 1) -> Topology:
    """A spout and a bolt."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout or Numbers(20, burst=5))
    declarer = builder.set_bolt("bolt", bolt or Tally(), tasks)
    if grouping is None:
        declarer.shuffle_grouping("numbers")
    elif isinstance(grouping, str):
        declarer.fields_grouping("numbers", grouping)
    else:
        declarer.custom_grouping("numbers", grouping)
    return builder.create_topology()


class RaisingSpout(Numbers):
    """Raises in one of its methods."""

    def __init__(self, where: str, *, ids: bool = True) -> None:
        super().__init__(20, ids=ids)
        self.where = where

    def _maybe(self, method: str) -> None:
        if self.where == method:
            raise ValueError(f"not in {method}")

    def open(self, conf, context, collector):
        super().open(conf, context, collector)
        self._maybe("open")

    def next_tuple(self):
        if self.next > 5:
            self._maybe("next_tuple")
        super().next_tuple()

    def ack(self, message_id):
        self._maybe("ack")

    def fail(self, message_id):
        self._maybe("fail")

    def exhausted(self):
        self._maybe("exhausted")
        return super().exhausted()


class SendingSpout(Numbers):
    """Emits whatever it is told to, however wrong."""

    def __init__(self, values: Any, *, stream: str = "default", message_id: Any = 1) -> None:
        super().__init__(1)
        self.values = values
        self.stream = stream
        self.message_id = message_id

    def send(self, number: int) -> None:
        values = self.values() if callable(self.values) else self.values
        message_id = self.message_id() if callable(self.message_id) else self.message_id
        self.collector.emit(values, message_id, self.stream)


class SendingBolt(BaseBasicBolt):
    """The same as a bolt."""

    def __init__(self, values: Any, *, stream: str = "default") -> None:
        self.values = values
        self.stream = stream

    def execute(self, tup, collector):
        collector.emit(self.values() if callable(self.values) else self.values, self.stream)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


def behind(bolt: Any) -> Topology:
    """A bolt between a spout and another bolt."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(20, burst=5))
    builder.set_bolt("bolt", bolt).shuffle_grouping("numbers")
    builder.set_bolt("end", Tally()).global_grouping("bolt")
    return builder.create_topology()


class RaisingBolt(BaseRichBolt):
    """Raises in one of its methods."""

    def __init__(self, where: str) -> None:
        self.where = where

    def _maybe(self, method: str) -> None:
        if self.where == method:
            raise RuntimeError(f"not in {method}")

    def prepare(self, conf, context, collector):
        self.collector = collector
        self.seen = 0
        self._maybe("prepare")

    def execute(self, tup):
        self.seen += 1
        self._maybe("execute")
        self.collector.fail(tup) if self.where == "fail" else self.collector.ack(tup)
        if self.where == "exit":
            sys.exit("enough")

    def __getstate__(self):
        if hasattr(self, "collector"):
            self._maybe("__getstate__")
        return {name: value for name, value in self.__dict__.items() if name != "collector"}


class Refusing:
    """A value that won't be pickled."""

    def __getstate__(self):
        raise ValueError("not in __getstate__")


class KeepingRefusing(BaseStatefulBolt):
    """Puts such a value into its key-value state."""

    def init_state(self, state):
        self.state = state

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        self.state.put(tup["n"], Refusing())
        self.collector.ack(tup)


class Chaining(BaseRichBolt):
    """Raises one error because of another."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        try:
            {}["wrod"]
        except KeyError as error:
            raise RuntimeError("no such word") from error


class Locked(BaseBasicBolt):
    """Can't be pickled."""

    def __init__(self) -> None:
        self.door = threading.Lock()

    def execute(self, tup, collector):
        pass


def unshipped() -> BaseBasicBolt:
    """Returns a bolt of a class in a module that exists in this process alone."""
    module = types.ModuleType("only_in_the_driver")
    code = "from topologies.parts import Tally\nclass Lonely(Tally):\n    pass\n"
    exec(code, module.__dict__)
    sys.modules["only_in_the_driver"] = module
    bolt: BaseBasicBolt = module.Lonely()
    return bolt


class RaisingGrouping(CustomStreamGrouping):
    """Raises, or chooses what there isn't."""

    def __init__(self, where: str) -> None:
        self.where = where

    def prepare(self, context, stream, target_tasks):
        if self.where == "prepare":
            raise LookupError("no way")

    def choose_tasks(self, task_id, values):
        if self.where == "choose_tasks":
            raise LookupError("no way")
        return [99]


class Columns(BatchBolt):
    """Gets columns of mixed values."""

    def prepare(self, conf, context, collector):
        self.rows = 0

    def execute_batch(self, batch, collector):
        self.rows += batch.num_rows


class WrongColumns(Columns):
    """Emits another number of columns than it declares."""

    def execute_batch(self, batch, collector):
        collector.emit(batch)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n", "more"))


def columns(bolt: Any, spout: Any = None) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout or Numbers(20, burst=5))
    builder.set_bolt("bolt", bolt).global_grouping("numbers")
    return builder.create_topology()


class Mixed(Numbers):
    """Emits numbers and texts in one field."""

    def send(self, number: int) -> None:
        self.collector.emit([number if number % 2 else str(number)], number)


class Mistaken(BaseBasicBolt):
    """Makes the mistake that its component is called after."""

    stateless = True

    def prepare(self, conf, context):
        self.mistake = context.this_component_id

    def execute(self, tup, collector):
        if self.mistake == "few":
            collector.emit([])
        elif self.mistake == "stream":
            collector.emit([1], "side")
        elif self.mistake == "key":
            collector.emit([object()])
        elif self.mistake == "anchor":
            tup["word"]

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("n"))


MISTAKES = {
    "few": 'TupleError: "few" (task *) emitted 0 value(s) on stream "default", which declares 1 (n): []',
    "stream": 'TupleError: "stream" (task *) emitted to stream "side", which it does not declare; declared: "default"',
    "key": 'TupleError: "key" (task *) emitted a value for field "n" of stream "default" that can\'t be grouped by: '
    "a object has no hash that is the same in every process; *",
    "anchor": "UnknownFieldError: *word*n*",
    "columns": 'TupleError: "columns" (task *) emitted 1 value(s) on stream "default", which declares 2 (n, more): *',
}


def mistakes() -> Topology:
    """Five bolts, each with another mistake; the topology continues."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(3, replay=False))
    for name in MISTAKES:
        bolt = WrongColumns() if name == "columns" else Mistaken()
        builder.set_bolt(name, bolt).shuffle_grouping("numbers")
        builder.set_bolt(f"{name}-end", Tally(), 2).fields_grouping(name, "n")
    return builder.create_topology()


SPOUT_BROKEN = {
    "a bolt that can't be pickled": Broken(
        lambda: line(bolt=Locked()),
        'component "bolt" failed in pickling: the component can\'t be pickled: *lock*; '
        "attribute(s) at fault: door (lock): create them in prepare or open",
    ),
    "open": Broken(
        lambda: line(RaisingSpout("open")),
        'component "numbers" (task 2) failed in open: ValueError: not in open',
        raised="raise ValueError(",
    ),
    "next_tuple": Broken(
        lambda: line(RaisingSpout("next_tuple")),
        'component "numbers" (task 2) failed in next_tuple: ValueError: not in next_tuple',
        raised="raise ValueError(",
    ),
    "exhausted": Broken(
        lambda: line(RaisingSpout("exhausted")),
        'component "numbers" (task 2) failed in exhausted: ValueError: not in exhausted',
        raised="raise ValueError(",
    ),
    "too many values": Broken(
        lambda: line(SendingSpout([1, 2])),
        'component "numbers" (task 2) failed in next_tuple: TupleError: "numbers" (task 2) emitted 2 value(s) '
        'on stream "default", which declares 1 (n): [1, 2]',
    ),
    "a text instead of values": Broken(
        lambda: line(SendingSpout("n")),
        'component "numbers" (task 2) failed in next_tuple: TupleError: "numbers" (task 2) emitted the text \'n\' '
        'on stream "default"; emit a list of values: [value]',
    ),
    "an undeclared stream": Broken(
        lambda: line(SendingSpout([1], stream="side")),
        'component "numbers" (task 2) failed in next_tuple: TupleError: "numbers" (task 2) emitted to stream "side", '
        'which it does not declare; declared: "default"',
    ),
    "a value that can't be pickled": Broken(
        lambda: line(SendingSpout(lambda: [threading.Lock()])),
        '"numbers" (task 2) emitted a value for field "n" of stream "default" that can\'t be pickled: *lock*',
    ),
    "a message id that can't be pickled": Broken(
        lambda: line(SendingSpout([1], message_id=threading.Lock)),
        '"numbers" (task 2) emitted a tuple whose message id can\'t be pickled: *lock*',
    ),
    "a value that can't be grouped by": Broken(
        lambda: line(SendingSpout(lambda: [object()]), grouping="n"),
        'component "numbers" (task 2) failed in next_tuple: TupleError: "numbers" (task 2) emitted a value '
        'for field "n" of stream "default" that can\'t be grouped by: a object has no hash that is the same in every '
        "process; *",
    ),
    "a custom grouping that raises in prepare": Broken(
        lambda: line(grouping=RaisingGrouping("prepare")),
        'the custom grouping RaisingGrouping of stream "default" from "numbers" raised in prepare: LookupError: no way',
    ),
    "a custom grouping that raises": Broken(
        lambda: line(grouping=RaisingGrouping("choose_tasks")),
        'component "numbers" (task 2) failed in next_tuple: TupleError: the custom grouping RaisingGrouping '
        'of stream "default" from "numbers" raised in choose_tasks: LookupError: no way',
    ),
    "a custom grouping that chooses a wrong task": Broken(
        lambda: line(grouping=RaisingGrouping("")),
        'component "numbers" (task 2) failed in next_tuple: TupleError: the custom grouping RaisingGrouping '
        'of stream "default" from "numbers" chose [99]; valid tasks are [1]',
    ),
}
"""By what is broken; all of it shows in the driver or in a spout host."""

BOLT_BROKEN = {
    "a value of key-value state": Broken(
        lambda: line(bolt=KeepingRefusing()),
        'component "bolt" (task 1) failed in snapshot: ValueError: not in __getstate__',
        raised='raise ValueError("not in __getstate__")',
    ),
    "execute, because of another error": Broken(
        lambda: line(bolt=Chaining()),
        'component "bolt" (task 1) failed in execute: RuntimeError: no such word',
        FAIL_FAST,
        raised='{}["wrod"]',
    ),
    "a module that workers don't have": Broken(
        lambda: line(bolt=unshipped()),
        "component \"bolt\" can't be loaded in a worker (ModuleNotFoundError: No module named 'only_in_the_driver'); "
        "ship the modules it needs, for example with --py-files",
    ),
    "prepare": Broken(
        lambda: line(bolt=RaisingBolt("prepare")),
        'component "bolt" (task 1) failed in prepare: RuntimeError: not in prepare',
        raised="raise RuntimeError(",
    ),
    "execute": Broken(
        lambda: line(bolt=RaisingBolt("execute")),
        'component "bolt" (task 1) failed in execute: RuntimeError: not in execute',
        FAIL_FAST,
        raised="raise RuntimeError(",
    ),
    "sys.exit": Broken(
        lambda: line(bolt=RaisingBolt("exit")),
        'component "bolt" (task 1) failed in execute: SystemExit: enough',
        FAIL_FAST,
        raised='sys.exit("enough")',
    ),
    "a snapshot": Broken(
        lambda: line(bolt=RaisingBolt("__getstate__")),
        'component "bolt" (task 1) failed in snapshot: RuntimeError: not in __getstate__',
        raised="raise RuntimeError(",
    ),
    "a value that can't be pickled": Broken(
        lambda: behind(SendingBolt(lambda: [threading.Lock()])),
        '"bolt" (task 1) emitted a value for field "n" of stream "default" that can\'t be pickled: *lock*',
    ),
    "columns of mixed values": Broken(
        lambda: columns(Columns(), Mixed(20, burst=20)),
        'component "bolt" (task 1) failed in execute: the tuples of stream "default" from "numbers" '
        "don't fit in Arrow columns, which a BatchBolt needs: *",
    ),
    "fail of the spout": Broken(
        lambda: line(RaisingSpout("fail"), RaisingBolt("fail")),
        'component "numbers" (task 2) failed in fail: ValueError: not in fail',
        raised="raise ValueError(",
    ),
    "ack of the spout": Broken(
        lambda: line(RaisingSpout("ack")),
        'component "numbers" (task 2) failed in ack: ValueError: not in ack',
        raised="raise ValueError(",
    ),
}
"""By what is broken; it shows once Spark executes a micro-batch."""
