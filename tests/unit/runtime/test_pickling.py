"""Values of classes that were defined in a script or a notebook travel between processes."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api.errors import StormError
from storm_on_spark.runtime import pickling

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

class Reader(BaseBasicBolt):
    def execute(self, tup, collector):
        return Point

def nested():
    class Local: pass
    return Local()
"""


def run_script(version: str = "1") -> types.ModuleType:
    """What a script or a cell of a notebook defines, as the `__main__` of some process."""
    module = types.ModuleType("__main__")
    module.__dict__["version"] = version
    exec(compile(SCRIPT, "script.py", "exec"), module.__dict__)
    return module


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is a process that has loaded nothing yet."""
    monkeypatch.setattr(pickling, "_namespaces", {})
    monkeypatch.setattr(pickling, "_sources", [])


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


def test_what_is_defined_in_a_function_or_has_no_pickle_is_refused() -> None:
    script = run_script()
    with pytest.raises(pickle.PicklingError, match=r"__main__\.nested\.<locals>\.Local is defined inside a function"):
        pickling.dumps(script.nested())
    with pytest.raises(TypeError, match="lock"):
        pickling.dumps([threading.Lock()])


WRITE = """
import cloudpickle, pathlib, sys
from storm_on_spark.runtime import pickling
folder = pathlib.Path(sys.argv[1])
if not (folder / "code").exists():
    (folder / "code").write_bytes(cloudpickle.dumps(Emitter()))
    (folder / "value").write_bytes(pickling.dumps([Point(4), Kind.A, Pair(1, 2)]))
else:
    print(*(getattr(v, "x", v) for v in pickling.loads((folder / "value").read_bytes())))
"""

READ = """
import pathlib, pickle, sys
from storm_on_spark.runtime import pickling
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
