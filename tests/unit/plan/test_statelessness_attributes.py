"""Bolts with state in an attribute, or that may have; and ways to hide it."""

# Bad habits are what these classes are about.
# ruff: noqa: RUF012

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any

import pytest

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichBolt,
)
from storm_on_spark.plan.statelessness import judge


class BadColor(enum.Enum):
    RED = []


REFUSED: list[tuple[str, Any, str]] = []


def refused(reason, *arguments):
    def register(cls):
        REFUSED.append((cls.__name__, cls(*arguments), reason))
        return cls

    return register


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


@refused("prepare stores self.counts")
class PlainCount(BaseBasicBolt):
    def prepare(self, conf, context):
        self.counts = Counter()

    def execute(self, tup, collector):
        self.counts[tup[0]] += 1


@refused("self.counts is a Counter")
class CountFromInit(BaseBasicBolt):
    def __init__(self):
        self.counts = Counter()

    def execute(self, tup, collector):
        self.counts[tup[0]] += 1


@refused("execute stores self.n")
class CountsWithAnInt(BaseBasicBolt):
    def __init__(self):
        self.n = 0

    def execute(self, tup, collector):
        self.n += 1


@refused("execute stores self.last")
class StoresInExecute(BaseBasicBolt):
    def execute(self, tup, collector):
        self.last = tup[0]


@refused("execute stores self.last")
class DeletesAnAttribute(BaseBasicBolt):
    last = 1

    def execute(self, tup, collector):
        del self.last


@refused("execute stores self.last")
class StoresByLoop(BaseBasicBolt):
    def execute(self, tup, collector):
        for self.last in tup:
            pass


@refused("execute stores self.last")
class StoresByUnpacking(BaseBasicBolt):
    def execute(self, tup, collector):
        self.last, _ = tup


@refused("execute stores self.last")
class StoresByWith(BaseBasicBolt):
    def execute(self, tup, collector):
        with open("x") as self.last:
            pass


@refused("execute stores self.last")
class StoresInComprehension(BaseBasicBolt):
    def execute(self, tup, collector):
        return [None for self.last in tup]


@refused("execute stores self.last")
class StoresInNestedFunction(BaseBasicBolt):
    def execute(self, tup, collector):
        def later():
            def still_later():
                self.last = tup

            still_later()

        later()


@refused("helper stores self.last")
class StoresInHelper(BaseBasicBolt):
    def execute(self, tup, collector):
        self.helper(tup)

    def helper(self, tup):
        self.last = tup


@refused("stores self.last")
class StoresInProperty(BaseBasicBolt):
    @property
    def word(self):
        return 1

    @word.setter
    def word(self, value):
        self.last = value

    def execute(self, tup, collector):
        collector.emit([self.word])


@refused("prepare stores self.rate")
class FilledInPrepare(BaseBasicBolt):
    def prepare(self, conf, context):
        self.rate = conf.get("rate", 3)

    def execute(self, tup, collector):
        collector.emit([self.rate])


@refused("prepare stores self.collector")
class KeepsSomethingElse(BaseRichBolt):
    def prepare(self, conf, context, collector):
        collector = []
        self.collector = collector

    def execute(self, tup):
        self.collector.append(tup)


@refused("prepare stores self.collector")
class KeepsEither(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.collector = conf.get("list") or collector

    def execute(self, tup):
        self.collector.emit([1])


@refused("prepare stores self.collector")
class KeepsEitherTheOtherWay(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.collector = collector if conf else []

    def execute(self, tup):
        self.collector.emit([1])


@refused("prepare stores self.context")
class SwapsParameters(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.context = context
        self.context = conf

    def execute(self, tup):
        pass


@refused("setup stores self.collector")
class PrepareUnderAnotherName(BaseRichBolt):
    def setup(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        self.setup(1, 2, tup)


@refused("execute calls prepare with arguments of its own")
class PreparesAgain(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.context = context

    def execute(self, tup):
        self.prepare(1, tup, 3)


@refused("execute calls prepare with arguments of its own")
class PreparesItsBase(Base):
    def execute(self, tup):
        super().prepare({}, tup, tup)

    def values(self, tup):
        return []


@refused("execute uses self.conf, the conf")
class ChangesItsConf(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.conf = conf

    def execute(self, tup):
        self.conf["n"] = 1


@refused("execute uses self.context, the context")
class UsesTaskData(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.context = context

    def execute(self, tup):
        self.context.set_task_data("n", 1)


@refused("uses set_task_data")
class UsesTaskDataByAlias(BaseBasicBolt):
    def prepare(self, conf, context):
        context.set_task_data("n", [])

    def execute(self, tup, collector):
        pass


@refused("execute uses self.collector, the collector")
class UsesCollectorAsBag(BaseRichBolt):
    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        self.collector.seen.append(tup)


@refused("execute stores an attribute seen")
class StoresOnTheCollector(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.seen = tup


@refused("execute stores self.x")
class StoresOnAnAliasOfSelf(BaseBasicBolt):
    def execute(this, tup, collector):
        this.x = tup


@refused("execute uses self other than by its attributes")
class AliasOfSelf(BaseBasicBolt):
    def execute(self, tup, collector):
        me = self
        me.x.append(tup)


@refused("execute uses setattr, a builtin_function_or_method")
class SetsByName(BaseBasicBolt):
    def execute(self, tup, collector):
        setattr(self, tup[0], 1)


@refused("execute uses object.__setattr__, a wrapper_descriptor")
class SetsByObject(BaseBasicBolt):
    def execute(self, tup, collector):
        object.__setattr__(self, tup[0], 1)


@refused("execute uses vars, a builtin_function_or_method")
class SetsByVars(BaseBasicBolt):
    def execute(self, tup, collector):
        vars(self)["n"] = 1


@refused("execute uses __dict__")
class SetsByDict(BaseBasicBolt):
    def execute(self, tup, collector):
        self.__dict__["n"] = 1


@refused("execute uses __class__")
class SetsByClass(BaseBasicBolt):
    counts = {}

    def execute(self, tup, collector):
        self.__class__.counts["n"] = 1


@refused("execute uses self other than by its attributes")
class SetsByType(BaseBasicBolt):
    counts = {}

    def execute(self, tup, collector):
        type(self).counts["n"] = 1


@refused("execute uses self other than by its attributes")
class HandsItselfOn(BaseBasicBolt):
    def execute(self, tup, collector):
        print(self)


@refused("execute uses self other than by its attributes")
class ReturnsItself(BaseBasicBolt):
    def execute(self, tup, collector):
        return self


@refused("execute uses self other than by its attributes")
class HandsItselfOnInLambda(BaseBasicBolt):
    def execute(self, tup, collector):
        return (lambda: print(self))()


@refused("execute assigns self")
class BecomesAnother(BaseBasicBolt):
    def execute(self, tup, collector):
        self = tup[0]
        self.append(1)


@refused("execute uses __init__")
class InitializesAgain(BaseBasicBolt):
    def __init__(self):
        self.n = 0

    def execute(self, tup, collector):
        self.__init__()


@refused("execute uses super() other than to call a method")
class KeepsSuper(BaseBasicBolt):
    def execute(self, tup, collector):
        base = super()
        base.cleanup()


@refused("execute reads self.missing, which is not there at submission")
class ReadsWhatIsNotThere(BaseBasicBolt):
    def execute(self, tup, collector):
        self.missing.append(tup)


@refused("self.seen is a list")
class MutableByArgument(BaseBasicBolt):
    def __init__(self):
        self.seen = []

    def execute(self, tup, collector):
        pass


@refused("self.limits is a tuple")
class MutableInsideATuple(BaseBasicBolt):
    def __init__(self):
        self.limits = ("a", [])

    def execute(self, tup, collector):
        self.limits[1].append(tup)


@refused("self.color is a BadColor")
class MutableEnumMember(BaseBasicBolt):
    def __init__(self):
        self.color = BadColor.RED

    def execute(self, tup, collector):
        self.color.value.append(tup)


class Text(str):
    __slots__ = ("seen",)


@refused("self.text is a Text")
class SubclassOfAnImmutable(BaseBasicBolt):
    def __init__(self):
        self.text = Text("a")

    def execute(self, tup, collector):
        pass


@refused("self.execute is a function")
class MethodOnTheInstance(BaseBasicBolt):
    def __init__(self):
        seen = []
        self.execute = lambda tup, collector: seen.append(tup)

    def execute(self, tup, collector):
        pass


@refused("prepare stores self.collector")
class StoresInAFunctionInPrepare(BaseRichBolt):
    """The parameter of the inner function only has the same name."""

    def prepare(self, conf, context, collector):
        def keep(collector):
            self.collector = collector

        keep([])

    def execute(self, tup):
        self.collector.emit(tup)


class Recorder:
    def __init__(self):
        self.seen = []

    def emit(self, values, anchors=None):
        self.seen.append(values)


@refused("prepare calls prepare with arguments of its own")
class KeepsItsOwnCollectorThroughItsBase(Base):
    def prepare(self, conf, context, collector):
        super().prepare(conf, context, Recorder())

    def values(self, tup):
        return []


@refused("prepare calls prepare with arguments of its own")
class KeepsAChangedParameterThroughItsBase(Base):
    def prepare(self, conf, context, collector):
        collector = Recorder()
        super().prepare(conf, context, collector)

    def values(self, tup):
        return []


@refused("execute calls prepare with arguments of its own")
class PreparesLater(Base):
    def execute(self, tup):
        super().prepare(1, 2, tup)

    def values(self, tup):
        return []


class Remembering:
    """A descriptor: what is stored to it goes to a place of its own."""

    def __set__(self, instance, value):
        pass

    def __get__(self, instance, owner):
        return Recorder()


@refused("execute uses the class attribute collector, a Remembering")
class KeepsInADescriptor(BaseRichBolt):
    collector = Remembering()

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        self.collector.emit(tup)


@pytest.mark.parametrize(("bolt", "reason"), [pytest.param(bolt, reason, id=name) for name, bolt, reason in REFUSED])
def test_what_is_not_provable_is_stateful(bolt, reason):
    verdict = judge(bolt)
    assert not verdict.stateless
    assert reason in verdict.reason
