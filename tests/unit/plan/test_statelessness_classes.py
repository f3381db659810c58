"""Bolts with state in an attribute of their class, or with a class that may hide some."""

# Bad habits are what these classes are about.
# ruff: noqa: RUF012

from __future__ import annotations

import functools
import operator
from collections import Counter
from typing import Any

import pytest

from storm_on_spark.api import (
    BaseBasicBolt,
)
from storm_on_spark.plan.statelessness import judge


class OddMeta(type):
    def __getattr__(cls, name):
        return LIST


LIST: list[Any] = []


class Caller:
    def __init__(self):
        self.n = 0

    def __call__(self, word):
        self.n += 1


REFUSED: list[tuple[str, Any, str]] = []


def refused(reason, *arguments):
    def register(cls):
        REFUSED.append((cls.__name__, cls(*arguments), reason))
        return cls

    return register


@refused("execute uses the class attribute counts, a dict")
class MutableClassAttribute(BaseBasicBolt):
    counts = {}

    def execute(self, tup, collector):
        self.counts[tup[0]] = 1


@refused("execute uses the class attribute counts, a Counter")
class CounterClassAttribute(BaseBasicBolt):
    counts = Counter()

    def execute(self, tup, collector):
        collector.emit([self.counts.get(tup[0])])


@refused("execute uses the global MutableClassByName.counts, a dict")
class MutableClassByName(BaseBasicBolt):
    counts = {}

    def execute(self, tup, collector):
        MutableClassByName.counts[tup[0]] = 1


@refused("execute stores an attribute n")
class StoresOnItsClass(BaseBasicBolt):
    n = 0

    def execute(self, tup, collector):
        StoresOnItsClass.n += 1


@refused("note stores self.n")
class StoresInClassMethod(BaseBasicBolt):
    n = 0

    @classmethod
    def note(cls):
        cls.n += 1

    def execute(self, tup, collector):
        self.note()


@refused("note uses the class attribute seen, a list")
class MutableInClassMethod(BaseBasicBolt):
    seen = []

    @classmethod
    def note(cls, word):
        cls.seen.append(word)

    def execute(self, tup, collector):
        self.note(tup[0])


@refused("execute uses __class__, an ABCMeta")
class MutableByClassCell(BaseBasicBolt):
    seen = []

    def execute(self, tup, collector):
        cls = __class__
        cls.seen.append(tup)


@refused("execute uses __class__.seen, a list")
class MutableByClassCellAtOnce(BaseBasicBolt):
    seen = []

    def execute(self, tup, collector):
        __class__.seen.append(tup)


@refused("execute uses the class attribute seen, a list")
class AliasOfClassAttribute(BaseBasicBolt):
    seen = []

    def execute(self, tup, collector):
        seen = self.seen
        seen.append(tup)


@refused("execute uses the class attribute word, a cached_property")
class CachedProperty(BaseBasicBolt):
    @functools.cached_property
    def word(self):
        return []

    def execute(self, tup, collector):
        self.word.append(tup)


@refused("execute uses the class attribute TABLE, a dict")
class ClassTableWrittenByMethod(BaseBasicBolt):
    TABLE = {"a": 1}

    def execute(self, tup, collector):
        self.TABLE.setdefault(tup[0], 1)


@refused("execute uses the class attribute TABLE, a dict")
class ClassTableOfLists(BaseBasicBolt):
    TABLE = {"a": [1]}

    def execute(self, tup, collector):
        self.TABLE["a"].append(1)


@refused("execute carries attributes of its own")
class AttributeOfAMethod(BaseBasicBolt):
    def execute(self, tup, collector):
        self.execute.counts["a"] = 1

    execute.counts = {}


@refused("ByGetattr defines __getattr__")
class ByGetattr(BaseBasicBolt):
    def __getattr__(self, name):
        return Counter()

    def execute(self, tup, collector):
        self.counts[tup[0]] += 1


@refused("BySetstate defines __setstate__")
class BySetstate(BaseBasicBolt):
    def __setstate__(self, state):
        self.seen = []

    def execute(self, tup, collector):
        pass


@refused("execute doesn't name the parameter that is the bolt")
class TakesAnything(BaseBasicBolt):
    def execute(*arguments):
        arguments[0].n = 1


@refused("execute is a Caller, not a plain method")
class CallableObjectAsMethod(BaseBasicBolt):
    execute = Caller()


@refused("execute is a partial, not a plain method")
class PartialAsMethod(BaseBasicBolt):
    execute = functools.partial(print, [])


class Meta(type(BaseBasicBolt)):
    pass


@refused("OddMetaclass has the metaclass Meta")
class OddMetaclass(BaseBasicBolt, metaclass=Meta):
    def execute(self, tup, collector):
        pass


@refused("IsAList inherits from list")
class IsAList(BaseBasicBolt, list):
    def execute(self, tup, collector):
        self.append(tup)


class Remembers:
    def remember(self, word):
        self.word = word


@refused("remember stores self.word")
class InheritsState(Remembers, BaseBasicBolt):
    def execute(self, tup, collector):
        self.remember(tup[0])


@refused("the property word is made of an attrgetter")
class PropertyOfAnObject(BaseBasicBolt):
    word = property(operator.attrgetter("other"))

    def execute(self, tup, collector):
        self.word.append(tup)


class Odd(metaclass=OddMeta):
    """Attributes of its class are whatever its metaclass makes of them."""


@refused("execute uses the global Odd, which has a metaclass of its own")
class AttributeByMetaclass(BaseBasicBolt):
    def execute(self, tup, collector):
        Odd.seen.append(tup)


@pytest.mark.parametrize(("bolt", "reason"), [pytest.param(bolt, reason, id=name) for name, bolt, reason in REFUSED])
def test_what_is_not_provable_is_stateful(bolt, reason):
    verdict = judge(bolt)
    assert not verdict.stateless
    assert reason in verdict.reason
