"""Which bolts are proved stateless: a table of sources and verdicts, `statelessness.txt`.

A case is a verdict, `--> proved` or what the reason must say, and the source of a bolt's class, or of a function that
returns a bolt. Names in the sources mean what they mean in this module. Arguments of the class stand in brackets.
"""

# Bad habits are what these classes are about.
# ruff: noqa: B006, F401, RUF012

from __future__ import annotations

import enum
import functools
import itertools
import json
import logging
import operator
import random
import re
import sys
import xml.etree.ElementTree
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
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
from storm_on_spark.plan.passes.statelessness import judge

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


class Text(str):
    __slots__ = ("seen",)


class Recorder:
    def __init__(self):
        self.seen = []

    def emit(self, values, anchors=None):
        self.seen.append(values)


class Remembering:
    """A descriptor: what is stored to it goes to a place of its own."""

    def __set__(self, instance, value):
        pass

    def __get__(self, instance, owner):
        return Recorder()


class Remembers:
    def remember(self, word):
        self.word = word


class Meta(type(BaseBasicBolt)):
    pass


class OddMeta(type):
    def __getattr__(cls, name):
        return GREETINGS


class Odd(metaclass=OddMeta):
    """Attributes of its class are whatever its metaclass makes of them."""


def cases() -> Iterator[Any]:
    text = Path(__file__).with_name("statelessness.txt").read_text("utf-8")
    for block in re.split(r"^--> ", text, flags=re.M)[1:]:
        verdict, source = re.split(r"\n", re.split(r"^===", block, flags=re.M)[0], maxsplit=1)
        verdict, _, arguments = verdict.partition("   ")
        found = re.search(r"^(?:class|def) (\w+)", source, flags=re.M)
        assert found, source
        yield pytest.param(source, found[1], arguments or "[]", verdict, id=found[1])


def made(source: str, name: str, arguments: str = "[]") -> Any:
    """Returns what a case's class or function makes."""
    names = dict(globals())
    exec(source, names)
    return names[name](*eval(arguments))


@pytest.mark.parametrize(("source", "name", "arguments", "verdict"), list(cases()))
def test_the_verdict_is_that_of_the_table(source: str, name: str, arguments: str, verdict: str) -> None:
    found = judge(made(source, name, arguments))
    assert found.stateless == (verdict == "proved"), found.reason
    assert f"{verdict}: " in found.reason if found.stateless else verdict in found.reason


def case(name: str) -> Any:
    source, name, arguments, _ = next(found.values for found in cases() if found.id == name)
    return made(source, name, arguments)


def test_a_declaration_is_believed():
    class Caching(BaseBasicBolt):
        stateless = True

        def execute(self, tup, collector):
            self.cache = tup

    class Careful(type(case("Split"))):
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


def test_a_columnar_bolt_with_pyarrow_and_numpy_is_proved():
    np = pytest.importorskip("numpy")
    pa = pytest.importorskip("pyarrow")
    pc = pytest.importorskip("pyarrow.compute")
    names = {"np": np, "pa": pa, "pc": pc, "SCHEMA": pa.schema([("word", pa.string())]), "BatchBolt": BatchBolt}
    exec(COLUMNAR, names)
    verdict = judge(names["SplitColumn"]())
    assert verdict.stateless, verdict.reason


def test_the_reason_says_what_is_kept():
    assert judge(case("Split")).reason == "proved: no attribute is stored"
    assert judge(case("RichWithCollector")).reason == "proved: keeps only the collector"
    assert judge(case("PortedFromStorm")).reason == "proved: keeps only the collector and the conf and the context"


def test_the_verdict_does_not_depend_on_how_often_it_is_asked():
    bolt = case("Helpers")
    assert judge(bolt) == judge(bolt)
    assert vars(bolt) == {}
