"""Bolts that are proved stateless; the two modules beside this one have those that are not."""

# Bad habits are what these classes are about.
# ruff: noqa: B006, RUF012

from __future__ import annotations

import enum
import functools
import itertools
import json
import logging
import random
import re
import xml.etree.ElementTree
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, NamedTuple, TypeVar

import pytest

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseTickTupleAwareRichBolt,
    BatchBolt,
    FailedException,
    Fields,
)
from storm_on_spark.plan.statelessness import judge

T = TypeVar("T")
LOG = logging.getLogger(__name__)
LIMIT = 3
STOP_WORDS = {"a", "the"}
CODES = {"a": 1, "b": 2}
GREETINGS = ["hello", "hi"]
PATTERN = re.compile(r"\w+")
SEEN: set[str] = set()
COUNTS: Counter[str] = Counter()
TOTALS: defaultdict[str, int] = defaultdict(int)
NESTED = {"a": [1]}
RECENT: deque[str] = deque()
TICKETS = itertools.count()
remember = RECENT.append
calls = 0

state = ModuleType("state")
state.counts = {}
state.limit = 3


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class BadColor(enum.Enum):
    RED = []


class Point(NamedTuple):
    x: int
    y: int


class Stats:
    counts: Counter[str] = Counter()
    limit = 3

    @staticmethod
    def bump(word):
        Stats.counts[word] += 1

    @classmethod
    def note(cls, word):
        cls.counts[word] += 1


class Clean:
    limit = 3

    def __init__(self, word):
        self.word = word

    @staticmethod
    def of(word):
        return word.lower()


class Caller:
    def __init__(self):
        self.n = 0

    def __call__(self, word):
        self.n += 1


caller = Caller()


def shout(word):
    return word.upper()


def bump(word):
    COUNTS[word] += 1


def bump_deeper(word):
    return [bump(part) for part in word]


def remember_default(word, seen=[]):
    seen.append(word)
    return seen


def tally(word):
    tally.counts[word] = 1


tally.counts = {}


@functools.lru_cache
def cached(word):
    return [word]


def logged(method):
    @functools.wraps(method)
    def wrapper(self, *arguments):
        LOG.debug("called")
        return method(self, *arguments)

    return wrapper


PROVED: list[tuple[str, Any]] = []


def proved(*arguments):
    def register(cls):
        PROVED.append((cls.__name__, cls(*arguments)))
        return cls

    return register


@proved()
class Split(BaseBasicBolt):
    def execute(self, tup, collector):
        for word in tup["sentence"].split():
            collector.emit([word])


@proved()
class RichWithCollector(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        self.collector.emit([tup[0] + "!"], anchors=tup)
        self.collector.ack(tup)


@proved()
class PortedFromStorm(BaseRichBolt):
    """Keeps all three parameters, under names of its own."""

    def __init__(self):
        self._collector = None

    def prepare(self, topology_conf, topology_context, output_collector):
        self._conf = topology_conf
        self._context = topology_context
        self._collector = output_collector

    def execute(self, tup):
        self._collector.emit([self._context.get_this_task_id(), tup[0]])
        self._collector.ack(tup)


@proved("!", 3)
class Configured(BaseBasicBolt):
    def __init__(self, suffix, times):
        self.suffix = suffix
        self.limits = (times, None, frozenset([1.5]))
        self.pattern = re.compile("a+")
        self.color = Color.RED
        self.fields = Fields("word")

    def execute(self, tup, collector):
        if self.pattern.match(tup[0]) and self.color is Color.RED:
            collector.emit([tup[0] + self.suffix * self.limits[0]])

    def declare_output_fields(self, declarer):
        declarer.declare(self.fields)


@proved("?")
@dataclass
class AsDataclass(BaseBasicBolt):
    suffix: str

    def execute(self, tup, collector):
        collector.emit([tup[0] + self.suffix])


@proved("?")
@dataclass(frozen=True)
class AsFrozenDataclass(BaseBasicBolt):
    suffix: str

    def execute(self, tup, collector):
        collector.emit([tup[0] + self.suffix])


@proved()
class WithSlots(BaseRichBolt):
    __slots__ = ("collector", "limit")

    def __init__(self):
        self.limit = 3

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        self.collector.emit([self.limit])


@proved()
class ClassConstants(BaseBasicBolt):
    SUFFIX = "!"
    WORDS = ("a", "b")
    TABLE = {"a": 1}
    LOG = logging.getLogger("x")

    def execute(self, tup, collector):
        if tup[0] in self.WORDS and self.TABLE.get(tup[0]) and tup[0] in ClassConstants.TABLE:
            self.LOG.info("yes")
            collector.emit([tup[0] + self.SUFFIX + str(self.TABLE["a"])])


@proved()
class Helpers(BaseBasicBolt):
    def execute(self, tup, collector):
        words = [self.clean(word) for word in self.words(tup)]
        for word in map(self.clean, filter(lambda w: self.wanted(w), words)):
            collector.emit([word, self.size, self.both(word)])

    def words(self, tup):
        yield from tup[0].split()

    def wanted(self, word):
        return len(word) > self.size

    @staticmethod
    def clean(word):
        return word.strip()

    @classmethod
    def both(cls, word):
        return cls.clean(word)

    @property
    def size(self):
        return 3


@proved()
class LocalState(BaseBasicBolt):
    """What a local variable holds is gone when the method returns."""

    def execute(self, tup, collector):
        counts: dict[str, int] = {}
        total = 0

        def add(word):
            nonlocal total
            total += 1
            counts[word] = counts.get(word, 0) + 1
            return total

        for word in tup[0].split():
            add(word)
        counts.update({"total": total})
        del counts["total"]
        collector.emit([counts, total])


@proved()
class ReadsGlobals(BaseBasicBolt):
    def execute(self, tup, collector):
        word = tup[0]
        if word in STOP_WORDS or word not in CODES or CODES[word] > LIMIT:
            raise FailedException("no")
        for greeting in GREETINGS:
            collector.emit([greeting, CODES.get(word), CODES["a"], GREETINGS[-1]])
        LOG.info("%s", Color.RED.value)
        collector.emit([PATTERN.findall(word), Color["BLUE"], Point(1, 2), Stats.limit, state.limit])


@proved()
class CallsFunctions(BaseBasicBolt):
    def execute(self, tup, collector):
        word = shout(tup[0])
        text = json.dumps({"word": word, "letters": sorted(Counter(word).items())})
        root = xml.etree.ElementTree.Element.__name__
        collector.emit([root, text, re.sub("a", "b", word), Clean.of(word), Clean(word), max(1, 2)])


@proved()
class SamplesAtRandom(BaseBasicBolt):
    def execute(self, tup, collector):
        if isinstance(tup, object) and type(tup).__name__:
            collector.emit([random.Random(3).random(), sum(x for x in range(10))])


class Base(BaseRichBolt, ABC):
    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)
        self.collector = collector

    def execute(self, tup):
        for value in self.values(tup):
            self.collector.emit([value], anchors=tup)
        self.collector.ack(tup)

    @abstractmethod
    def values(self, tup): ...


class Mixin(Generic[T]):
    suffix = "!"

    def values(self, tup):
        return [value + self.suffix for value in tup]


@proved()
class Inherited(Mixin[str], Base):
    def prepare(self, conf, context, collector):
        super().prepare(conf, context, collector)

    def values(self, tup):
        return super().values(tup)


@proved()
class Columnar(BatchBolt):
    def execute_batch(self, batch, collector):
        collector.emit(batch.select(["word"]), parent=None)


@proved()
class Ticking(BaseTickTupleAwareRichBolt):
    def prepare(self, conf, context, collector):
        self.collector = collector

    def process(self, tup):
        self.collector.ack(tup)

    def on_tick_tuple(self, tup):
        self.collector.emit(["tick"])


@proved()
class StoresBeforeSubmission(BaseBasicBolt):
    """What these methods store is there when the bolt is looked at."""

    def declare_output_fields(self, declarer):
        self.declared = True
        declarer.declare("word")

    def get_component_configuration(self):
        self.asked = 1
        return {"topology.tick.tuple.freq.secs": 1}

    def execute(self, tup, collector):
        collector.emit([tup[0]])


@proved()
class FailsAndMatches(BaseBasicBolt):
    def execute(self, tup, collector):
        try:
            match tup[0]:
                case {"word": word}:
                    collector.emit([word])
                case [first, *rest]:
                    collector.emit([first, rest])
                case _:
                    collector.emit([f"{tup[0]!r:>{LIMIT}}"])
        except (KeyError, ValueError) as error:
            raise FailedException(str(error)) from error
        finally:
            collector.emit(["done"])
        with open(tup[0]) as file:
            collector.emit([(lambda x, y=1: x + y)(len(file.read()))])


def _in_a_function():
    import string

    @proved()
    class ClosesOverCode(BaseBasicBolt):
        """Modules, classes and functions of an enclosing function are as good as global ones."""

        def execute(self, tup, collector):
            collector.emit([string.capwords(tup[0]), helper(tup[0])])

        def cleanup(self):
            super().cleanup()

    def helper(word):
        return word


_in_a_function()

SOURCELESS = """
class Sourceless(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.emit([word + suffix for word in tup[0].split() if word not in self.skip])

    skip = ("a", "b")
"""


def test_a_class_without_source_is_proved_too():
    names: dict[str, Any] = {"BaseBasicBolt": BaseBasicBolt, "suffix": "!", "__name__": "__main__"}
    exec(SOURCELESS, names)
    assert judge(names["Sourceless"]()).stateless


def test_a_declaration_is_believed():
    class Caching(BaseBasicBolt):
        stateless = True

        def execute(self, tup, collector):
            self.cache = tup

    class Careful(Split):
        stateless = False

    assert (judge(Caching()).stateless, judge(Caching()).reason) == (True, "declared")
    assert (judge(Careful()).stateless, judge(Careful()).reason) == (False, "declared stateful")


COLUMNAR = """
class SplitColumn(BatchBolt):
    def execute_batch(self, batch, collector):
        words = pc.split_pattern_regex(batch["sentence"], " +")
        flat = pa.compute.list_flatten(words)
        rows = pa.RecordBatch.from_arrays([flat], schema=SCHEMA)
        collector.emit(rows, parent=pc.list_parent_indices(words).to_numpy())
        collector.emit(pa.record_batch([flat], names=["word"]), parent=np.repeat(np.arange(3, dtype=np.int64), 2))
        collector.emit(pa.array([np.add.reduce(np.zeros(3))], pa.float64()))
"""


@pytest.mark.parametrize("bolt", [pytest.param(bolt, id=name) for name, bolt in PROVED])
def test_stateless_is_proved(bolt):
    verdict = judge(bolt)
    assert verdict.stateless, verdict.reason
    assert verdict.reason.startswith("proved: ")


def test_a_columnar_bolt_with_pyarrow_and_numpy_is_proved():
    np = pytest.importorskip("numpy")
    pa = pytest.importorskip("pyarrow")
    pc = pytest.importorskip("pyarrow.compute")
    names = {"np": np, "pa": pa, "pc": pc, "SCHEMA": pa.schema([("word", pa.string())]), "BatchBolt": BatchBolt}
    exec(COLUMNAR, names)
    verdict = judge(names["SplitColumn"]())
    assert verdict.stateless, verdict.reason


def test_the_reason_says_what_is_kept():
    assert judge(Split()).reason == "proved: no attribute is stored"
    assert judge(RichWithCollector()).reason == "proved: keeps only the collector"
    assert judge(PortedFromStorm()).reason == "proved: keeps only the collector and the conf and the context"


def test_the_verdict_does_not_depend_on_how_often_it_is_asked():
    bolt = Helpers()
    assert judge(bolt) == judge(bolt)
    assert vars(bolt) == {}
