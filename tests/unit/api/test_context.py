from __future__ import annotations

import pickle

import pytest

from storm_on_spark.api import (
    BaseBasicBolt,
    BaseRichSpout,
    BaseTaskHook,
    Fields,
    FieldsGrouping,
    GlobalStreamId,
    InvalidTopologyError,
    ShuffleGrouping,
    TopologyBuilder,
    TopologyContext,
)


class Lines(BaseRichSpout):
    def next_tuple(self):
        pass

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("line"))
        declarer.declare_stream("late", Fields("line", "secs"))


class Split(BaseBasicBolt):
    def execute(self, tup, collector):
        pass

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class Count(BaseBasicBolt):
    def execute(self, tup, collector):
        pass


TASKS = {"lines": [1], "split": [3, 2], "count": [4, 5, 6], "__acker": [7]}


def context_of(task: int, conf: dict[str, object] | None = None) -> TopologyContext:
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines())
    builder.set_bolt("split", Split(), 2).shuffle_grouping("lines").shuffle_grouping("lines", "late")
    builder.set_bolt("count", Count(), 3).fields_grouping("split", "word")
    return TopologyContext(builder.create_topology(), conf or {}, TASKS, task, "words", "words-1-1700000000")


def test_who_the_task_is() -> None:
    context = context_of(3)
    assert context.this_task_id == context.get_this_task_id() == 3
    assert context.this_component_id == context.get_this_component_id() == "split"
    assert context.this_task_index == context.get_this_task_index() == 1
    assert context.topology_name == "words"
    assert context.storm_id == context.get_storm_id() == "words-1-1700000000"
    assert repr(context) == '<TopologyContext of task 3 of "split" in "words">'


def test_who_the_others_are() -> None:
    context = context_of(1)
    assert context.component_ids == context.get_component_ids() == ["lines", "split", "count", "__acker"]
    assert context.task_to_component == context.get_task_to_component()
    assert context.task_to_component == {
        1: "lines", 2: "split", 3: "split", 4: "count", 5: "count", 6: "count", 7: "__acker",
    }  # fmt: skip
    assert context.component_tasks("split") == context.get_component_tasks("split") == [2, 3]
    assert context.component_id(6) == context.get_component_id(6) == "count"
    assert context.component_streams("lines") == context.get_component_streams("lines") == ["default", "late"]
    assert context.component_output_fields("lines", "late") == Fields("line", "secs")
    assert context.get_component_output_fields("split") == Fields("word")


def test_what_surrounds_the_task() -> None:
    context = context_of(2)
    assert context.this_sources() == context.get_this_sources()
    assert context.this_sources() == {
        GlobalStreamId("lines"): ShuffleGrouping(),
        GlobalStreamId("lines", "late"): ShuffleGrouping(),
    }
    assert context.this_targets() == context.get_this_targets()
    assert context.this_targets() == {"default": {"count": FieldsGrouping(Fields("word"))}}
    assert context.this_streams() == context.get_this_streams() == ["default"]
    assert context.this_output_fields() == context.get_this_output_fields() == Fields("word")
    assert context.this_input_fields() == context.get_this_input_fields()
    assert context.this_input_fields() == {
        GlobalStreamId("lines"): Fields("line"),
        GlobalStreamId("lines", "late"): Fields("line", "secs"),
    }
    assert context.targets("lines") == context.get_targets("lines")
    assert context.targets("lines") == {
        "default": {"split": ShuffleGrouping()},
        "late": {"split": ShuffleGrouping()},
    }
    assert context.sources("lines") == context.get_sources("lines") == {}


def test_the_system_can_be_asked_about() -> None:
    context = context_of(2)
    assert context.component_output_fields("__system", "__tick") == Fields("rate_secs")
    assert context.component_streams("__acker") == []
    assert context.component_tasks("__acker") == [7]


def test_answers_are_copies() -> None:
    context = context_of(2)
    context.component_tasks("split").append(9)
    context.component_ids.append("x")
    context.task_to_component[9] = "x"
    assert context.component_tasks("split") == [2, 3]
    assert "x" not in context.component_ids
    assert 9 not in context.task_to_component


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda c: c.component_tasks("spilt"), 'no component "spilt"; there are: '),
        (lambda c: c.component_streams("spilt"), 'Did you mean "split"?'),
        (lambda c: c.sources("spilt"), 'no component "spilt"'),
        (lambda c: c.targets("spilt"), 'no component "spilt"'),
        (
            lambda c: c.component_output_fields("lines", "lates"),
            'component "lines" has no stream "lates"; there are: "default", "late". Did you mean "late"?',
        ),
        (
            lambda c: c.this_output_fields("late"),
            'component "split" has no stream "late"; there are: "default".',
        ),
        (lambda c: c.component_id(99), "no component has task 99; there are: {'lines': [1], "),
    ],
)
def test_asking_for_what_is_not_there(ask, problem: str) -> None:
    with pytest.raises(InvalidTopologyError) as caught:
        ask(context_of(2))
    assert problem in str(caught.value)


def test_a_context_is_of_a_task_that_exists() -> None:
    with pytest.raises(InvalidTopologyError, match="no component has task 8"):
        context_of(8)


def test_conf_is_read_only() -> None:
    context = context_of(2, {"my.key": 1})
    assert context.conf is context.get_conf()
    assert context.conf["my.key"] == 1
    with pytest.raises(TypeError):
        context.conf["my.key"] = 2  # type: ignore[index]


@pytest.mark.parametrize(("conf", "seconds"), [({}, 30), ({"topology.message.timeout.secs": 7}, 7)])
def test_message_timeout(conf: dict[str, object], seconds: int) -> None:
    assert context_of(2, conf).max_topology_message_timeout() == seconds


def test_task_data() -> None:
    context = context_of(2)
    context.set_task_data("cache", {})
    assert context.get_task_data("cache") == {}
    assert context.get_task_data("other") is None
    assert context.get_task_data("other", 3) == 3


class Recording(BaseTaskHook):
    def prepare(self, conf, context):
        self.prepared_with = (dict(conf), context)


def test_hooks_are_prepared_and_kept_in_order() -> None:
    context = context_of(2, {"my.key": 1})
    hooks = [Recording(), Recording()]
    for hook in hooks:
        context.add_task_hook(hook)
    assert context.hooks == context.get_hooks() == tuple(hooks)
    assert hooks[0].prepared_with == ({"my.key": 1}, context)


@pytest.mark.parametrize("wrong", [Recording, "Recording", None])
def test_hooks_are_instances(wrong: object) -> None:
    with pytest.raises(InvalidTopologyError, match=r'component "split" \(task 2\): add_task_hook takes an instance'):
        context_of(2).add_task_hook(wrong)  # type: ignore[arg-type]


def test_a_context_stays_in_its_process() -> None:
    with pytest.raises(TypeError, match="belongs to one task in one process"):
        pickle.dumps(context_of(2))
