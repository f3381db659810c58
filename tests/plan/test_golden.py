"""What topologies compile to, as a person sees it; beside this file, in `golden`.

A change of the compiler shows as a diff of pictures. `pytest tests/plan --update-golden` writes them again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichBolt,
    BaseRichSpout,
    BaseTickTupleAwareRichBolt,
    BatchBolt,
    Config,
    CustomStreamGrouping,
    Fields,
    TopologyBuilder,
)
from storm_on_spark.api.config import PROFILES, effective_conf
from storm_on_spark.plan.compile import compile_graph, place
from storm_on_spark.plan.explain.document import explain_dict
from storm_on_spark.plan.explain.mermaid import explain_mermaid
from storm_on_spark.plan.explain.text import explain_text
from storm_on_spark.plan.explain.words import counted
from storm_on_spark.plan.fingerprint import fingerprint
from storm_on_spark.plan.passes.placement import partitions_of


class Sentences(BaseRichSpout):
    def next_tuple(self): ...

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("sentence"))


class Split(BaseBasicBolt):
    def execute(self, tup, collector):
        for word in tup["sentence"].split():
            collector.emit([word])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class Count(BaseBasicBolt):
    def prepare(self, conf, context):
        self.counts = Counter()

    def execute(self, tup, collector):
        self.counts[tup["word"]] += 1
        collector.emit([tup["word"], self.counts[tup["word"]]])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word", "count"))


class Rank(BaseTickTupleAwareRichBolt):
    def prepare(self, conf, context, collector):
        self.collector = collector
        self.best = {}

    def process(self, tup):
        self.best[tup["word"]] = tup["count"]
        self.collector.ack(tup)

    def on_tick_tuple(self, tup):
        self.collector.emit([dict(self.best)])

    def get_component_configuration(self):
        return {Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 2}

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("ranking"))


class Words(BaseRichSpout):
    def next_tuple(self): ...

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class Exclaim(BaseRichBolt):
    """Anchors and acks."""

    def __init__(self, mark="!"):
        self.mark = mark

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, tup):
        self.collector.emit([tup["word"] + self.mark], anchors=tup)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class ExclaimUnanchored(Exclaim):
    def execute(self, tup):
        self.collector.emit([tup["word"] + self.mark])
        self.collector.ack(tup)


class Join(BaseRichBolt):
    """Waits for the tuples of both sides, anchors to both."""

    def prepare(self, conf, context, collector):
        self.collector = collector
        self.waiting = {}

    def execute(self, tup):
        other = self.waiting.pop(tup["id"], None)
        if other is None:
            self.waiting[tup["id"]] = tup
            return
        self.collector.emit([tup["id"], other[1], tup[1]], anchors=[other, tup])
        self.collector.ack(other)
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "left", "right"))


class Numbers(BaseRichSpout):
    def next_tuple(self): ...

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "value"))


class Double(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.emit([tup["id"], tup["value"] * 2])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("id", "value"))


class Crawl(BaseBasicBolt):
    """Emits pages, and links to follow."""

    def execute(self, tup, collector):
        collector.emit([tup["url"], "page"])
        collector.emit([tup["url"] + "/next"], stream="links")
        if not tup["url"]:
            collector.emit([tup["url"], "empty"], stream="errors")

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("url", "page"))
        declarer.declare_stream("links", Fields("url"))
        declarer.declare_stream("errors", Fields("url", "reason"))


class Urls(BaseRichSpout):
    def next_tuple(self): ...

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("url"))


class Show(BaseBasicBolt):
    def execute(self, tup, collector):
        print(tup.values)


class Dispatch(BaseRichBolt):
    """Names the receiving task itself."""

    def prepare(self, conf, context, collector):
        self.collector = collector
        self.workers = context.component_tasks("work")

    def execute(self, tup):
        self.collector.emit_direct(self.workers[tup["id"] % len(self.workers)], [tup["id"]], stream="jobs")
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare_stream("jobs", Fields("id"), direct=True)


class ByLength(CustomStreamGrouping):
    def prepare(self, context, stream, target_tasks):
        self.targets = target_tasks

    def choose_tasks(self, task_id, values):
        return [self.targets[len(values[0]) % len(self.targets)]]


class SplitColumn(BatchBolt):
    def execute_batch(self, batch, collector):
        collector.emit(batch)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class CountColumn(BatchBolt):
    def prepare(self, conf, context, collector):
        self.counts = {}

    def execute_batch(self, batch, collector):
        for word in batch["word"].to_pylist():
            self.counts[word] = self.counts.get(word, 0) + 1

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word", "count"))


TOPOLOGIES: dict[str, Callable[[TopologyBuilder], dict[str, object] | None]] = {}


def topology(build):
    TOPOLOGIES[build.__name__] = build
    return build


@topology
def linear(builder):
    builder.set_spout("words", Words())
    builder.set_bolt("exclaim1", Exclaim(), 3).shuffle_grouping("words")
    builder.set_bolt("exclaim2", Exclaim("?"), 2).fields_grouping("exclaim1", "word")


@topology
def word_count(builder):
    builder.set_spout("sentences", Sentences(), 1)
    builder.set_bolt("split", Split(), 2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count(), 2).fields_grouping("split", Fields("word"))


@topology
def word_count_columnar(builder):
    builder.set_spout("sentences", Sentences(), 1)
    builder.set_bolt("split", SplitColumn(), 2).local_or_shuffle_grouping("sentences")
    builder.set_bolt("count", CountColumn(), 5).fields_grouping("split", Fields("word"))


@topology
def rolling_top_words(builder):
    """Partial ranking in parallel, then one global ranking."""
    builder.set_spout("sentences", Sentences(), 2)
    builder.set_bolt("split", Split(), 4).shuffle_grouping("sentences")
    builder.set_bolt("count", Count(), 4).fields_grouping("split", "word")
    builder.set_bolt("rank", Rank(), 4).fields_grouping("count", "word")
    builder.set_bolt("top", Show()).global_grouping("rank")


@topology
def diamond(builder):
    """Two ways from the spout to a join."""
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("left", Double(), 2).shuffle_grouping("numbers")
    builder.set_bolt("right", Double(), 2).none_grouping("numbers")
    join = builder.set_bolt("join", Join(), 3)
    join.fields_grouping("left", "id").fields_grouping("right", "id")


@topology
def cycle(builder):
    """Links that are found go back to the crawler."""
    builder.set_spout("urls", Urls())
    builder.set_bolt("crawl", Crawl(), 2).shuffle_grouping("urls").fields_grouping("crawl", "url", stream="links")
    builder.set_bolt("show", Show()).shuffle_grouping("crawl")


@topology
def long_cycle(builder):
    """A cycle over three bolts, one of them with state."""
    builder.set_spout("sentences", Sentences())
    builder.set_bolt("split", Split(), 2).shuffle_grouping("sentences")
    count = builder.set_bolt("count", Count(), 2)
    count.fields_grouping("split", "word").fields_grouping("exclaim", "word")
    builder.set_bolt("exclaim", Exclaim(), 2).shuffle_grouping("count")


@topology
def multi_stream(builder):
    builder.set_spout("urls", Urls())
    builder.set_bolt("crawl", Crawl(), 2).shuffle_grouping("urls")
    builder.set_bolt("pages", Show()).shuffle_grouping("crawl")
    builder.set_bolt("links", Show(), 2).fields_grouping("crawl", "url", stream="links")
    builder.set_bolt("errors", Show()).global_grouping("crawl", stream="errors")
    everything = builder.set_bolt("everything", Show())
    for stream in ("default", "links", "errors"):
        everything.shuffle_grouping("crawl", stream)


@topology
def direct(builder):
    builder.set_spout("numbers", Numbers())
    builder.set_bolt("dispatch", Dispatch()).shuffle_grouping("numbers")
    builder.set_bolt("work", Show(), 4).direct_grouping("dispatch", "jobs")


@topology
def global_grouping(builder):
    builder.set_spout("words", Words(), 2)
    builder.set_bolt("count", Count(), 3).global_grouping("words")


@topology
def all_grouping(builder):
    """A signal that every task receives."""
    builder.set_spout("words", Words())
    builder.set_spout("signals", Urls())
    builder.set_bolt("count", Count(), 3).fields_grouping("words", "word").all_grouping("signals")


@topology
def custom(builder):
    builder.set_spout("words", Words())
    builder.set_bolt("exclaim", Exclaim(), 3).custom_grouping("words", ByLength())


@topology
def partial_key(builder):
    """Skewed keys counted in two places each, and added up."""
    builder.set_spout("sentences", Sentences())
    builder.set_bolt("split", Split(), 2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count(), 4).partial_key_grouping("split", "word")
    builder.set_bolt("total", Count(), 2).fields_grouping("count", "word")


@topology
def two_spouts_joining(builder):
    builder.set_spout("ages", Numbers(), 2)
    builder.set_spout("names", Numbers())
    builder.set_bolt("double", Double()).shuffle_grouping("ages")
    builder.set_bolt("join", Join(), 2).fields_grouping("names", "id").fields_grouping("double", "id")
    builder.set_bolt("show", Show()).shuffle_grouping("join")


@topology
def unanchored(builder):
    builder.set_spout("words", Words())
    builder.set_bolt("exclaim", ExclaimUnanchored(), 2).shuffle_grouping("words")
    builder.set_bolt("count", Count()).fields_grouping("exclaim", "word")


@topology
def ackers_off(builder):
    builder.set_spout("sentences", Sentences())
    builder.set_bolt("split", Split(), 2).shuffle_grouping("sentences")
    builder.set_bolt("count", Count(), 2).fields_grouping("split", "word")
    return {Config.TOPOLOGY_ACKER_EXECUTORS: 0}


@topology
def three_ackers(builder):
    builder.set_spout("words", Words(), 2)
    builder.set_bolt("count", Count(), 2).fields_grouping("words", "word")
    return {Config.TOPOLOGY_ACKER_EXECUTORS: 3}


@topology
def fused_chain(builder):
    """Everything runs in the source; one bolt has two callers."""
    builder.set_spout("words", Words())
    builder.set_bolt("a", Exclaim(), 2).shuffle_grouping("words")
    builder.set_bolt("b", Exclaim(), 2).local_or_shuffle_grouping("a")
    builder.set_bolt("c", Exclaim(), 2).none_grouping("a")
    builder.set_bolt("d", Show()).shuffle_grouping("b").shuffle_grouping("c")


@topology
def through_stages(builder):
    """Tuples that pass through stages that have nothing to do with them."""
    builder.set_spout("words", Words())
    builder.set_bolt("first", Count(), 2).fields_grouping("words", "word")
    builder.set_bolt("second", Count(), 2).fields_grouping("first", "word")
    third = builder.set_bolt("third", Count(), 2)
    third.fields_grouping("second", "word").fields_grouping("words", "word")


@topology
def spout_alone(builder):
    builder.set_spout("words", Words(), 2)


def compiled(name, conf=None):
    builder = TopologyBuilder()
    own = TOPOLOGIES[name](builder) or {}
    return compile_graph(builder.create_topology(), effective_conf({**own, **conf}) if conf else own)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_picture(name, golden):
    golden(f"{name}.txt", explain_text(place(compiled(name), 2)))


@pytest.mark.parametrize("name", ["word_count", "cycle", "multi_stream"])
def test_the_json(name, golden):
    document = explain_dict(place(compiled(name), 2))
    golden(f"{name}.json", json.dumps(document, indent=2) + "\n")


@pytest.mark.parametrize("name", ["word_count", "cycle", "multi_stream", "ackers_off"])
def test_the_flowchart(name, golden):
    golden(f"{name}.mmd", explain_mermaid(place(compiled(name), 2)))


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["word_count", "cycle"])
def test_what_a_profile_makes_of_it_on_four_cores(name, profile, golden):
    graph = compiled(name, {Config.TOPOLOGY_PROFILE: profile})
    plan = place(graph, partitions_of(graph, 4))
    golden(f"{name}_{profile}.txt", explain_text(plan))
    if name == "word_count":
        golden(f"{name}_{profile}.json", json.dumps(explain_dict(plan), indent=2) + "\n")
        golden(f"{name}_{profile}.mmd", explain_mermaid(plan))


def test_what_checkpoints_depend_on(golden):
    """Where this changes, existing checkpoints can't continue: raise the fingerprint's version, and tell users."""
    names = ("word_count", "long_cycle", "through_stages", "three_ackers", "ackers_off")
    printed = {
        f"{name}, {counted(partitions, 'partition')}": fingerprint(place(compiled(name), partitions))
        for name in names
        for partitions in (1, 2, 3)
    }
    golden("fingerprints.json", json.dumps(printed, indent=1) + "\n")


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_picture_fits_a_narrow_terminal_and_says_the_same(name, width):
    plan = place(compiled(name), 2)
    narrow, wide = explain_text(plan, width), explain_text(plan)
    assert max(map(len, narrow.splitlines())) <= width
    frame = dict.fromkeys(map(ord, "│┌┐└┘─├▼"), " ")
    assert Counter(narrow.translate(frame).split()) == Counter(wide.translate(frame).split())


def test_no_golden_file_is_left_over(request):
    files = {file.stem for file in (request.path.parent / "golden").iterdir()}
    profiles = {f"{name}_{profile}" for name in ("word_count", "cycle") for profile in PROFILES}
    assert files == {*TOPOLOGIES, *profiles, "fingerprints"}


def test_word_count_has_one_exchange_for_the_fields_grouping_and_one_for_the_acker():
    plan = place(compiled("word_count"), 2)
    assert plan.stages[0].components == ("sentences", "split")
    assert explain_dict(plan)["exchanges"] == 2
    assert "split → count  fields(word): exchange, hash of word over tasks 1, 2" in explain_text(plan)
