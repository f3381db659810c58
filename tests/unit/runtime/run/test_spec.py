"""What every process of a topology gets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import functools, sys
from pathlib import Path
from storm_on_spark import BaseBasicBolt, Fields, TopologyBuilder, compile_topology
from storm_on_spark.runtime.run.spec import make_spec
from storm_on_spark.testing import ListSpout

@functools.lru_cache(maxsize=10)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

class Fib(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.emit([fib(tup[0])])

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("fib"))

builder = TopologyBuilder()
builder.set_spout("numbers", ListSpout([1], fields=["n"]))
builder.set_bolt("fib", Fib()).shuffle_grouping("numbers")
fib(20)
spec = make_spec(compile_topology(builder.create_topology()).graph, "fib", "fib-1", "1", ())
Path(sys.argv[1]).write_bytes(spec.dumps())
"""

WORKER = """
import sys
from pathlib import Path
from storm_on_spark.runtime.run.spec import load_spec

fib = load_spec(Path(sys.argv[1]).read_bytes()).instance("fib").execute.__globals__["fib"]
print(fib.cache_info().currsize, fib(50), fib.cache_parameters(), fib.__name__)
"""


def test_a_cached_function_of_a_script_goes_along_without_its_cache(tmp_path: Path) -> None:
    for name, text in (("script", SCRIPT), ("worker", WORKER)):
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        done = subprocess.run(
            [sys.executable, path, tmp_path / "spec"], check=True, capture_output=True, text=True, timeout=60
        )
    assert done.stdout == "0 12586269025 {'maxsize': 10, 'typed': False} fib\n"
