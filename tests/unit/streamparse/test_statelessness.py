"""Bolts of pystorm are read as native ones are: those that keep nothing are stateless, and may be fused."""

from __future__ import annotations

from typing import Any

import pytest

from storm_on_spark.plan.passes.statelessness import judge
from storm_on_spark.streamparse import adapt
from storm_on_spark.streamparse.build import build
from storm_on_spark.streamparse.components.bolt_bridge import PENDING
from storm_on_spark.streamparse.stand_in.streamparse import BatchingBolt, Bolt, Grouping, Spout, Topology
from storm_on_spark.testing import BoltTester, make_tuple

LIMIT = 3


class Words(Bolt):
    outputs = ("word",)


class Split(Words):
    def process(self, tup: Any) -> None:
        for word in tup.values.sentence.split():
            if len(word) > LIMIT:
                self.emit([word], stream="default", anchors=[tup])
                self.logger.debug("task %s: %s", self.task_id, word)
        self.log("done")


class Own(Split):
    auto_fail = False

    def emit(self, *args: Any, **kwargs: Any) -> Any:
        return super().emit(*args, **kwargs)


class Declared(Words):
    stateless = True

    def process(self, tup: Any) -> None:
        self.counter = tup.id


class StoresLater(Words):
    def initialize(self, conf: Any, context: Any) -> None:
        self.counts: dict[str, int] = {}


class StoresInPrepare(Words):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.conf = conf


class Made(Words):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.emit = [].append  # type: ignore[assignment]


class UsesItsTuples(Words):
    def process(self, tup: Any) -> None:
        self._current_tups.append(tup)


class UsesTheConfiguration(Words):
    def process(self, tup: Any) -> None:
        self.storm_conf["seen"] = tup.id  # type: ignore[index]


class UsesTheLogger(Words):
    def process(self, tup: Any) -> None:
        self.logger.addHandler(tup.id)


class Batches(BatchingBolt):
    outputs = ("word",)


class Waits(Split):
    auto_ack = False


class MayWait(Split):
    @property
    def auto_ack(self) -> bool:  # type: ignore[override]
        return True


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        (Split, "proved: no attribute is stored"),
        (Own, "proved: no attribute is stored"),
        (Declared, "declared"),
    ],
)
def test_stateless(cls: type, reason: str) -> None:
    verdict = judge(adapt(cls))
    assert (verdict.stateless, verdict.reason) == (True, reason)


@pytest.mark.parametrize(
    ("cls", "reason"),
    [
        (StoresLater, "initialize stores self.counts"),
        (StoresInPrepare, "prepare stores self.conf"),
        (Made, "Made defines __init__"),
        (UsesItsTuples, "process uses self._current_tups, a list"),
        (UsesTheConfiguration, "process reads self.storm_conf, which is not there at submission"),
        (UsesTheLogger, "process uses self.logger in a way that may store something"),
        (Batches, "collects tuples in batches"),
        (Waits, "keeps tuples that wait for an ack"),
        (MayWait, "keeps tuples that wait for an ack"),
    ],
)
def test_stateful(cls: type, reason: str) -> None:
    verdict = judge(adapt(cls))
    assert (verdict.stateless, verdict.reason) == (False, f"stateful: {reason}")


def test_people_see_the_users_class() -> None:
    class Lines(Spout):
        outputs = ("sentence",)

    class Flow(Topology):
        lines = Lines.spec()
        split = Split.spec(inputs={lines: Grouping.SHUFFLE})

    topology = build(Flow)
    assert topology["split"].class_name == f"{__name__}.Split"
    assert "bolt split (Split, x1)" in str(topology)
    assert "Split x1" in topology._repr_html_()


def test_a_tuple_that_failed_by_an_exception_is_forgotten() -> None:
    class Breaks(Words):
        def process(self, tup: Any) -> None:
            raise ValueError(tup.values.sentence)

    tester = BoltTester(adapt(Breaks), [make_tuple(["a"], ["sentence"])])
    for _ in range(3):
        with pytest.raises(ValueError, match="storm"):
            tester.execute(make_tuple(["storm"], ["sentence"]))
    assert vars(tester.bolt.component)[PENDING] == {}
