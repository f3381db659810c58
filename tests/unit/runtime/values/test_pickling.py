"""Values of classes that were defined in a script or a notebook travel between processes."""

from __future__ import annotations

import dataclasses
import gc
import pickle
import subprocess
import sys
import threading
import types
import weakref
from collections import OrderedDict
from pathlib import Path
from random import Random
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stormtest import Source, make_worker

from storm_on_spark.api import TopologyBuilder
from storm_on_spark.api.errors import StormError
from storm_on_spark.runtime.bolts import worker as worker_module
from storm_on_spark.runtime.bolts.worker import worker_for
from storm_on_spark.runtime.values import pickling

SCRIPT = """
import enum, collections
from storm_on_spark.api import BaseBasicBolt

class Kind(enum.Enum):
    A = 1

class Point:
    class Inner:
        def __init__(self, value): self.value = value
        def __eq__(self, other): return self.value == other.value
    def __init__(self, x): self.x = x
    def __eq__(self, other): return type(self) is type(other) and self.x == other.x
    def __hash__(self): return hash(self.x)
    def double(self): return Point(2 * self.x)

Pair = collections.namedtuple("Pair", "a b")

class Only:
    '''Known to `Emitter` alone.'''

def make(x): return Point(x)

class Emitter(BaseBasicBolt):
    def execute(self, tup, collector):
        return Kind, Point, Pair, make, Only

class Sample:
    '''Of which only a list of the script knows.'''

SAMPLES = [Sample()]

class Sampler(BaseBasicBolt):
    def execute(self, tup, collector):
        return SAMPLES

class Reader(BaseBasicBolt):
    def execute(self, tup, collector):
        return Point

def nested():
    class Local: pass
    return Local()
"""


def run_script(text: str = SCRIPT) -> types.ModuleType:
    """What a script or a cell of a notebook defines, as the `__main__` of some process."""
    module = types.ModuleType("__main__")
    exec(compile(text, "script.py", "exec"), module.__dict__)
    return module


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a process that has loaded nothing yet."""
    monkeypatch.setattr(pickling, "current", pickling.Namespace())


def load_component(module: types.ModuleType, name: str) -> Any:
    """A component as a worker gets it."""
    component = pickle.loads(cloudpickle.dumps(getattr(module, name)()))
    pickling.register_component(component)
    return component


@given(st.recursive(st.integers() | st.text() | st.none(), lambda v: st.lists(v) | st.tuples(v, v), max_leaves=10))
def test_plain_values(value: Any) -> None:
    assert pickling.loads(pickling.dumps(value)) == value
    assert pickling.dumps(value) == pickle.dumps(value, 5), "plain values take the quick way"


def test_objects_of_a_script_arrive_as_those_of_the_components_code() -> None:
    script = run_script()
    kind, point, pair, make, _ = load_component(script, "Emitter").execute(None, None)
    data = pickling.dumps(
        [script.Kind.A, script.Point(3), script.Pair(1, script.Point.Inner(2)), script.make, script.Point]
    )
    a, b, c, d, e = pickling.loads(data)
    assert (a, b, type(c), d, e) == (kind.A, point(3), pair, make, point)
    assert b.double().x == 6
    assert c.b == point.Inner(2)
    again = pickling.loads(pickling.dumps([a, b, c, d, e]))
    assert (again[:2], again[2].b, again[3:]) == ([a, b], c.b, [d, e]), "and can travel on"


def test_a_name_that_only_another_component_knows_is_found_there() -> None:
    script = run_script()
    reader, loaded = load_component(script, "Reader"), []

    class Run:
        def load_all(self) -> None:
            loaded.append(load_component(script, "Emitter"))

    run = Run()
    pickling.register_source(run.load_all)
    assert pickling.loads(pickling.dumps(script.Point(1))) == reader.execute(None, None)(1)
    assert loaded == []
    found = pickling.loads(pickling.dumps(script.Only()))
    assert type(found).__qualname__ == "Only"
    assert len(loaded) == 1
    with pytest.raises(StormError, match=r"__main__\.Gone is needed to read a value, but no component"):
        pickling.find("__main__", "Gone")


def test_a_class_that_came_with_a_value_of_the_script_is_found() -> None:
    script = run_script()
    pickling.enter(pickling.Namespace())
    (sample,) = load_component(script, "Sampler").execute(None, None)
    assert type(pickling.loads(pickling.dumps(script.SAMPLES))[0]) is type(sample)


def test_a_class_that_came_with_a_value_is_found_in_a_process_of_one_run() -> None:
    script = run_script()
    code = "\n".join(
        [
            "import pickle, sys",
            "from storm_on_spark.runtime.values import pickling",
            "pickling.register_component(component := pickle.loads(bytes.fromhex(sys.argv[1])))",
            "(value,) = component.execute(None, None)",
            "assert type(pickling.loads(bytes.fromhex(sys.argv[2]))[0]) is type(value)",
        ]
    )
    words = cloudpickle.dumps(script.Sampler()).hex(), pickling.dumps(script.SAMPLES).hex()
    subprocess.run([sys.executable, "-c", code, *words], check=True)


def test_a_run_that_is_over_is_not_kept() -> None:
    class Run:
        def load_all(self) -> None:
            raise AssertionError

    run = Run()
    pickling.register_source(run.load_all)
    del run
    gc.collect()
    with pytest.raises(StormError):
        pickling.find("__main__", "Gone")


def test_the_newest_definition_counts() -> None:
    load_component(run_script(), "Emitter")
    newer = run_script()
    point = load_component(newer, "Emitter").execute(None, None)[1]
    assert type(pickling.loads(pickling.dumps(newer.Point(1)))) is point


def spec_of(start: str, script: types.ModuleType) -> bytes:
    builder = TopologyBuilder()
    builder.set_spout("source", Source())
    builder.set_bolt("emitter", script.Emitter()).shuffle_grouping("source")
    return dataclasses.replace(make_worker(builder).spec, start_id=start).dumps()


@pytest.fixture
def _one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "workers", OrderedDict())
    # `pickling.enter` replaces it; this one is put back at the end.
    monkeypatch.setattr(cloudpickle.cloudpickle, "_DYNAMIC_CLASS_TRACKER_BY_ID", weakref.WeakValueDictionary())


@pytest.mark.usefixtures("_one_worker")
@pytest.mark.parametrize("seed", range(5))
def test_runs_that_share_a_worker_have_classes_of_their_own(seed: int) -> None:
    """Scripts that name different classes alike, and a notebook that defined its classes again."""
    random = Random(seed)
    runs = {}
    for factor in range(2, 6):
        script = run_script(text=SCRIPT.replace("2 * self.x", f"{factor} * self.x"))
        runs[f"run-{factor}"] = (factor, spec_of(f"run-{factor}", script), pickling.dumps(script.Point(10)))
    last: dict[str, type] = {}
    for _ in range(30):
        name = random.choice(list(runs))
        factor, spec, data = runs[name]
        worker = worker_for(name, spec)
        if random.random() < 0.5:
            assert worker.spec.instance("emitter").execute(None, None)[1](1).double().x == factor
        point = pickling.loads(data)
        assert point.double().x == 10 * factor, "the value of another run's class"
        assert pickling.loads(pickling.dumps(point)).double().x == 10 * factor
        last[name] = type(point)
    assert len(set(last.values())) == len(last)


@pytest.mark.usefixtures("_one_worker")
def test_a_class_that_was_changed_between_two_starts_is_another_class_for_each() -> None:
    script = run_script()
    script.Point.factor = 2
    data, first = pickling.dumps(script.Point(1)), spec_of("first", script)
    script.Point.factor = 3
    second = spec_of("second", script)
    found = {}
    for name in ("first", "second", "first", "second"):
        worker_for(name, first if name == "first" else second).spec.instance("emitter")
        found.setdefault(name, []).append(pickling.loads(data).factor)
    assert found == {"first": [2, 2], "second": [3, 3]}


def test_what_is_defined_in_a_function_or_has_no_pickle_is_refused() -> None:
    script = run_script()
    with pytest.raises(pickle.PicklingError, match=r"__main__\.nested\.<locals>\.Local is defined inside a function"):
        pickling.dumps(script.nested())
    with pytest.raises(TypeError, match="lock"):
        pickling.dumps([threading.Lock()])


WRITE = """
import cloudpickle, pathlib, sys
from storm_on_spark.runtime.values import pickling
folder = pathlib.Path(sys.argv[1])
if not (folder / "code").exists():
    (folder / "code").write_bytes(cloudpickle.dumps(Emitter()))
    (folder / "value").write_bytes(pickling.dumps([Point(4), Kind.A, Pair(1, 2)]))
else:
    print(*(getattr(v, "x", v) for v in pickling.loads((folder / "value").read_bytes())))
"""

READ = """
import pathlib, pickle, sys
from storm_on_spark.runtime.values import pickling
folder = pathlib.Path(sys.argv[1])
pickling.register_component(pickle.loads((folder / "code").read_bytes()))
point, kind, pair = pickling.loads((folder / "value").read_bytes())
print(point.double().x, kind.name, pair.b, type(point).__module__)
(folder / "value").write_bytes(pickling.dumps([point.double(), kind, pair]))
"""


def test_between_real_processes(tmp_path: Path) -> None:
    """A script pickles, a worker, whose `__main__` is another, reads and answers, and the script reads that."""
    outputs = []
    for name, text in (("script", SCRIPT + WRITE), ("worker", READ), ("again", SCRIPT + WRITE)):
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        done = subprocess.run([sys.executable, path, tmp_path], check=True, capture_output=True, text=True)
        outputs.append(done.stdout.split("\n")[0])
    assert outputs == ["", "8 A 2 __main__", "8 Kind.A Pair(a=1, b=2)"]
