"""Bolts with state in a global, a closure, a default argument or another class; and ways to hide it."""

# Bad habits are what these classes are about.
# ruff: noqa: B006, F821, RUF012

from __future__ import annotations

import enum
import functools
import itertools
import json
import logging
import random
import re
import sys
from collections import Counter, defaultdict, deque
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import pytest

from storm_on_spark.api import (
    BaseBasicBolt,
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


REFUSED: list[tuple[str, Any, str]] = []


def refused(reason, *arguments):
    def register(cls):
        REFUSED.append((cls.__name__, cls(*arguments), reason))
        return cls

    return register


@refused("execute assigns the global calls")
class AssignsAGlobal(BaseBasicBolt):
    def execute(self, tup, collector):
        global calls
        calls += 1


@refused("execute assigns the global calls")
class AssignsAGlobalInALambda(BaseBasicBolt):
    def execute(self, tup, collector):
        def later():
            global calls
            calls = 1

        later()


@refused("execute uses the global COUNTS, a Counter")
class MutatesAGlobal(BaseBasicBolt):
    def execute(self, tup, collector):
        COUNTS[tup[0]] += 1


@refused("execute uses the global SEEN, a set")
class MutatesAGlobalByMethod(BaseBasicBolt):
    def execute(self, tup, collector):
        SEEN.add(tup[0])


@refused("execute uses the global CODES, a dict")
class StoresInAGlobalDict(BaseBasicBolt):
    def execute(self, tup, collector):
        CODES[tup[0]] = 1


@refused("execute uses the global CODES, a dict")
class AddsInAGlobalDict(BaseBasicBolt):
    def execute(self, tup, collector):
        CODES["a"] += 1


@refused("execute uses the global CODES, a dict")
class AliasOfAGlobal(BaseBasicBolt):
    def execute(self, tup, collector):
        codes = CODES
        codes["a"] = 1


@refused("execute uses the global GREETINGS, a list")
class HandsAGlobalOn(BaseBasicBolt):
    def execute(self, tup, collector):
        list.append(GREETINGS, 1)


@refused("execute uses the global random.shuffle, a method")
class HiddenGenerator(BaseBasicBolt):
    """Methods of an object that `random` keeps."""

    def execute(self, tup, collector):
        random.shuffle(tup[0])


@refused("execute uses the global GREETINGS, a list")
class GlobalAsDefault(BaseBasicBolt):
    def execute(self, tup, collector):
        def later(seen=GREETINGS):
            seen.append(tup)

        later()


@refused("execute uses the global NESTED, a dict")
class GlobalOfMutables(BaseBasicBolt):
    def execute(self, tup, collector):
        NESTED["a"].append(1)


@refused("execute uses the global TOTALS, a defaultdict")
class ReadingThatWrites(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.emit([TOTALS[tup[0]]])


@refused("execute uses the global TICKETS, a count")
class GlobalIterator(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.emit([next(TICKETS)])


@refused("execute uses the global remember, a builtin_function_or_method")
class BoundMethodOfAGlobal(BaseBasicBolt):
    def execute(self, tup, collector):
        remember(tup[0])


@refused("execute uses the global caller, a Caller")
class CallableGlobal(BaseBasicBolt):
    def execute(self, tup, collector):
        caller(tup[0])


@refused("execute uses the global state.counts, a dict")
class MutatesAModule(BaseBasicBolt):
    def execute(self, tup, collector):
        state.counts["a"] = 1


@refused("execute uses the global state, a module")
class AliasOfAModule(BaseBasicBolt):
    def execute(self, tup, collector):
        module = state
        module.counts["a"] = 1


@refused("execute stores an attribute limit")
class StoresOnAModule(BaseBasicBolt):
    def execute(self, tup, collector):
        state.limit = 4


@refused("execute uses the global sys.modules, a dict")
class ByModules(BaseBasicBolt):
    def execute(self, tup, collector):
        sys.modules["state"].counts["a"] = 1


@refused("execute uses the global Stats.counts, a Counter")
class StateOfAnotherClass(BaseBasicBolt):
    def execute(self, tup, collector):
        Stats.counts[tup[0]] += 1


@refused("execute uses the global Stats, a type")
class AliasOfAnotherClass(BaseBasicBolt):
    def execute(self, tup, collector):
        for stats in (Stats,):
            stats.counts[tup[0]] += 1


@refused("execute → bump uses the global Stats.counts, a Counter")
class StaticMethodOfAnotherClass(BaseBasicBolt):
    def execute(self, tup, collector):
        Stats.bump(tup[0])


@refused("execute uses the global Stats.note, a classmethod")
class ClassMethodOfAnotherClass(BaseBasicBolt):
    def execute(self, tup, collector):
        Stats.note(tup[0])


@refused("execute → bump uses the global COUNTS, a Counter")
class StateOfAFunction(BaseBasicBolt):
    def execute(self, tup, collector):
        bump(tup[0])


@refused("execute → bump_deeper → bump uses the global COUNTS, a Counter")
class StateOfAFunctionOfAFunction(BaseBasicBolt):
    def execute(self, tup, collector):
        bump_deeper(tup[0])


@refused("execute → remember_default uses a list as a default argument")
class StateInADefaultOfAFunction(BaseBasicBolt):
    def execute(self, tup, collector):
        remember_default(tup[0])


@refused("execute uses the global tally, a function")
class StateInAttributesOfAFunction(BaseBasicBolt):
    def execute(self, tup, collector):
        tally(tup[0])


@refused("execute uses the global cached, a _lru_cache_wrapper")
class StateInACache(BaseBasicBolt):
    def execute(self, tup, collector):
        cached("all").append(tup[0])


@refused("execute uses globals, a builtin_function_or_method")
class ByGlobals(BaseBasicBolt):
    def execute(self, tup, collector):
        globals()["calls"] = 1


@refused("execute uses exec, a builtin_function_or_method")
class ByExec(BaseBasicBolt):
    def execute(self, tup, collector):
        exec("COUNTS[1] = 1")


@refused("execute uses f_globals")
class ByFrame(BaseBasicBolt):
    def execute(self, tup, collector):
        sys._getframe().f_globals["calls"] = 1


@refused("execute imports json while it runs")
class ImportsWhileItRuns(BaseBasicBolt):
    def execute(self, tup, collector):
        import json as state_of_mine

        state_of_mine.counts["a"] = 1


@refused("execute uses the global json.no_such_name, which can't be found")
class UsesWhatAModuleLacks(BaseBasicBolt):
    """A module may make attributes when they are asked for."""

    def execute(self, tup, collector):
        json.no_such_name.append(tup)


@refused("execute uses undefined_name, which is not defined")
class UsesWhatIsNotDefined(BaseBasicBolt):
    def execute(self, tup, collector):
        undefined_name.append(1)


@refused("execute uses LOAD_BUILD_CLASS")
class DefinesAClass(BaseBasicBolt):
    def execute(self, tup, collector):
        class Inner:
            seen = SEEN

        Inner.seen.add(1)


@refused("execute uses self other than by its attributes")
class Decorated(BaseBasicBolt):
    @logged
    def execute(self, tup, collector):
        pass


@refused("execute uses a list as a default argument")
class MutableDefault(BaseBasicBolt):
    def execute(self, tup, collector, seen=[]):
        seen.append(tup)


@refused("execute uses a dict as a default argument")
class MutableKeywordDefault(BaseBasicBolt):
    def execute(self, tup, collector, *, seen={}):
        seen[tup[0]] = 1


@refused("helper uses a list as a default argument")
class MutableDefaultOfAHelper(BaseBasicBolt):
    def execute(self, tup, collector):
        self.helper(tup)

    @staticmethod
    def helper(tup, seen=[]):
        seen.append(tup)


@refused("execute → bump uses the global COUNTS, a Counter")
class FunctionAsDefault(BaseBasicBolt):
    def execute(self, tup, collector, note=bump):
        note(tup[0])


def _closures():
    seen = []
    late = None
    limit = 3
    total = 0

    @refused("execute uses seen, a variable of an enclosing function")
    class ClosesOverAList(BaseBasicBolt):
        def execute(self, tup, collector):
            seen.append(tup)

    @refused("execute uses limit, a variable of an enclosing function")
    class ClosesOverAnInt(BaseBasicBolt):
        """Whoever shares the variable may change it."""

        def execute(self, tup, collector):
            collector.emit([limit])

    @refused("execute assigns total, a variable of an enclosing function")
    class AssignsANonlocal(BaseBasicBolt):
        def execute(self, tup, collector):
            nonlocal total
            total += 1

    @refused("execute assigns total, a variable of an enclosing function")
    class AssignsANonlocalDeeper(BaseBasicBolt):
        def execute(self, tup, collector):
            def later():
                nonlocal total
                total += 1

            later()

    def note(word):
        nonlocal total
        total += 1

    @refused("execute → note assigns total, a variable of an enclosing function")
    class ClosesOverAFunctionWithState(BaseBasicBolt):
        def execute(self, tup, collector):
            note(tup[0])

    del late

    @refused("execute uses late, a variable of an enclosing function that has no value")
    class ClosesOverWhatIsNotThereYet(BaseBasicBolt):
        def execute(self, tup, collector):
            late.append(tup)

    bag = SimpleNamespace(seen=[])

    @refused("execute uses bag, a variable of an enclosing function")
    class ClosesOverAnObject(BaseBasicBolt):
        def execute(self, tup, collector):
            bag.seen.append(tup)


_closures()


SOURCELESS_COUNT = """
class SourcelessCount(BaseBasicBolt):
    def execute(self, tup, collector):
        seen.append(tup[0])
        collector.emit([len(seen)])
"""


def test_a_class_without_source_with_state():
    names: dict[str, Any] = {"BaseBasicBolt": BaseBasicBolt, "seen": [], "__name__": "__main__"}
    exec(SOURCELESS_COUNT, names)
    assert judge(names["SourcelessCount"]()).reason == "stateful: execute uses the global seen, a list"


@pytest.mark.parametrize(("bolt", "reason"), [pytest.param(bolt, reason, id=name) for name, bolt, reason in REFUSED])
def test_what_is_not_provable_is_stateful(bolt, reason):
    verdict = judge(bolt)
    assert not verdict.stateless
    assert reason in verdict.reason
