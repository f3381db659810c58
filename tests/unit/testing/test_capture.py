"""Captures: records in files, the bolt and the hook that write them."""

from __future__ import annotations

import gc
import os
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from children import forked

from storm_on_spark import (
    BaseBasicBolt,
    Fields,
    GlobalGrouping,
    InvalidTopologyError,
    StormError,
    TopologyBuilder,
    compile_topology,
)
from storm_on_spark.api import EmitInfo, SpoutAckInfo, SpoutFailInfo
from storm_on_spark.testing import (
    CaptureBolt,
    CapturedOutcome,
    CapturedTuple,
    CaptureHook,
    ListSpout,
    make_context,
    make_tick_tuple,
    make_tuple,
    read_capture,
    run_bolt,
    with_capture,
)
from storm_on_spark.testing.running.capture import CAPTURE_COMPONENT, CAPTURE_DIR
from storm_on_spark.testing.running.recording import Recorder, read_records


class Directs(BaseBasicBolt):
    def execute(self, tup: Any, collector: Any) -> None: ...

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare("word")
        declarer.declare_stream("direct", "word", direct=True)


def test_records_come_back_in_order_and_a_torn_one_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.records"
    for part in ([("a", 1)], [("b", [None, {"c": 2.5}])]):
        recorder = Recorder(path)
        for record in part:
            recorder.write(record)
        recorder.close()
    assert list(read_records(path)) == [("a", 1), ("b", [None, {"c": 2.5}])]
    whole = path.read_bytes()
    for length in range(len(whole) - 20, len(whole)):
        path.write_bytes(whole[:length])
        assert list(read_records(path)) == [("a", 1)]


def test_records_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "a.records"

    def write(writer: int) -> None:
        recorder = Recorder(path)
        for number in range(200):
            recorder.write((writer, number, "x" * number))

    for pid in [forked(partial(write, writer)) for writer in range(4)]:
        assert os.waitpid(pid, 0)[1] == 0
    records = list(read_records(path))
    for writer in range(4):
        assert [record[1] for record in records if record[0] == writer] == list(range(200))


def test_a_capture_has_a_limit(tmp_path: Path) -> None:
    bolt = CaptureBolt(tmp_path, max_bytes=200)
    with pytest.raises(StormError, match=r"bolt-1.records is full: it has \d+ bytes of at most 200"):
        run_bolt(bolt, [make_tuple(["x" * 50])] * 10)
    assert 1 <= len(bolt.captured()) < 10
    with pytest.raises(ValueError, match="closed"):
        bolt.execute(make_tuple(["a"]), None)  # type: ignore[arg-type]


def test_a_capturing_bolt_writes_down_what_it_executes() -> None:
    capture = CaptureBolt()
    result = run_bolt(capture, [make_tuple(["a"], component="words", stream="s", task=4), make_tick_tuple()])
    assert capture.captured() == [CapturedTuple("words", "s", 4, ("a",))]
    assert result.emitted == []
    assert len(result.acked) == 2


def test_a_capturing_bolt_may_pass_tuples_on() -> None:
    capture = CaptureBolt(pass_through=["word", "count"])
    tup = make_tuple(["a", 1])
    result = run_bolt(capture, [tup])
    assert [(emission.values, emission.anchors) for emission in result.emitted] == [(("a", 1), (tup,))]


def test_the_folder_of_a_capture_goes_with_it_but_not_with_a_copy() -> None:
    capture = CaptureBolt()
    folder = capture.directory
    copy = pickle.loads(pickle.dumps(capture))
    del copy
    gc.collect()
    assert folder.is_dir()
    del capture
    gc.collect()
    assert not folder.exists()


def test_the_hook_writes_down_acks_fails_and_direct_emits(tmp_path: Path) -> None:
    context = make_context(Directs(), "words", targets={"work": 1}, conf={CAPTURE_DIR: str(tmp_path)})
    hook = CaptureHook()
    context.add_task_hook(hook)
    hook.emit(EmitInfo(["a"], "default", 2, [3]))
    hook.emit(EmitInfo(["b"], "direct", 2, [3]))
    hook.spout_ack(SpoutAckInfo("m1", 2, 7.5))
    hook.spout_fail(SpoutFailInfo("m2", 2, None))
    hook.cleanup()
    task = context.this_task_id
    capture = read_capture(tmp_path)
    assert capture.tuples == [CapturedTuple("words", "direct", task, ("b",))]
    assert capture.acks == [CapturedOutcome("words", task, "m1", 7.5)]
    assert capture.fails == [CapturedOutcome("words", task, "m2", None)]


def topology() -> Any:
    builder = TopologyBuilder()
    builder.set_spout("lines", ListSpout(["a"]), 2)
    builder.set_bolt("words", Directs(), 3).shuffle_grouping("lines")
    return builder.create_topology()


def test_capturing_subscribes_to_all_but_direct_streams_and_leaves_tasks_as_they_are(tmp_path: Path) -> None:
    plain = topology()
    watched = with_capture(plain, tmp_path)
    inputs = watched[CAPTURE_COMPONENT].inputs
    assert [(str(source), grouping) for source, grouping in inputs] == [
        ("lines", GlobalGrouping()),
        ("words", GlobalGrouping()),
    ]
    before, after = compile_topology(plain).graph, compile_topology(watched).graph
    for name, component in before.components.items():
        assert after.components[name].tasks == component.tasks
        assert after.components[name].stage == component.stage
    assert after.components[CAPTURE_COMPONENT].stateless


def test_only_chosen_components_are_captured(tmp_path: Path) -> None:
    watched = with_capture(topology(), tmp_path, ["words"])
    assert [str(source) for source, _ in watched[CAPTURE_COMPONENT].inputs] == ["words"]
    assert with_capture(topology(), tmp_path, []) == topology() or CAPTURE_COMPONENT not in with_capture(
        topology(), tmp_path, []
    )
    with pytest.raises(InvalidTopologyError, match='no component "wrods"'):
        with_capture(topology(), tmp_path, ["wrods"])


def test_fields_of_what_passes_through_are_declared() -> None:
    builder = TopologyBuilder()
    builder.set_spout("lines", ListSpout(["a"]))
    builder.set_bolt("capture", CaptureBolt(pass_through="word")).shuffle_grouping("lines")
    assert builder.create_topology()["capture"].streams["default"].fields == Fields("word")
