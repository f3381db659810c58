"""Components that the Flux files beside it name."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from storm_on_spark import BaseWindowedBolt
from storm_on_spark.api import BaseBasicBolt, BaseRichSpout, CustomStreamGrouping, Fields, TopologyBuilder


class Mode(enum.Enum):
    FAST = 1
    SAFE = 2


class Words(BaseRichSpout):
    """A finite spout: the words, `rounds` times."""

    def __init__(self, words=("a", "b"), rounds: int = 1):
        self.words, self.rounds, self.position = list(words), rounds, 0

    def open(self, conf, context, collector):
        self.collector = collector

    def exhausted(self):
        return self.position >= len(self.words) * self.rounds

    def next_tuple(self):
        if not self.exhausted():
            word = self.words[self.position % len(self.words)]
            self.position += 1
            self.collector.emit([word], message_id=self.position)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class Streams(Words):
    def declare_output_fields(self, declarer):
        super().declare_output_fields(declarer)
        declarer.declare_stream("errors", Fields("text"))
        declarer.declare_stream("direct", Fields("text"), direct=True)


@dataclass
class Part:
    name: str = ""

    class Inner:
        def __init__(self, name):
            self.name = name


class Bolt(BaseBasicBolt):
    """Keeps what it is made with."""

    limit = 0

    def __init__(self, *args, mode=None):
        self.args, self.mode, self.calls, self.batchSize = args, mode, [], 0
        self._hidden = 1

    def execute(self, tup, collector):
        collector.emit(list(tup.values))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))

    def setDelimiter(self, text):
        self.calls.append(("setDelimiter", text))

    def set_field_names(self, names):
        self.calls.append(("set_field_names", names))

    def with_foo(self, *args):
        self.calls.append(("with_foo", args))
        return self

    def with_none(self):
        self.calls.append(("with_none",))

    @classmethod
    def make(cls, *args):
        return cls("made", *args)


class Typed(Bolt):
    def __init__(self, mode: Mode, ratio: float, pair: tuple[int, ...] = ()):
        super().__init__(mode, ratio, pair)


class Raises(Bolt):
    def __init__(self):
        raise ValueError("no such luck")


class First(CustomStreamGrouping):
    def __init__(self, index=0):
        self.index = index

    def prepare(self, context, stream, target_tasks):
        self.task = target_tasks[self.index]

    def choose_tasks(self, task_id, values):
        return [self.task]


class Source:
    def __init__(self, parallelism=1):
        self.parallelism = parallelism

    def get_topology(self, conf):
        builder = TopologyBuilder()
        builder.set_spout("words", Words())
        builder.set_bolt("bolt", Bolt(conf["my.value"]), self.parallelism).shuffle_grouping("words")
        return builder.create_topology()

    def without_conf(self):
        return self.get_topology({"my.value": "none"})

    def wrong(self, conf):
        return 3


class Windows(BaseWindowedBolt):
    """Counts the tuples of a window."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, window):
        self.collector.emit([len(window)])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("number"))
