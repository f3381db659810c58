"""Programs that submit their topology themselves, as `run`, `submit` and others load them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.cli.main import main
from storm_on_spark.cluster.code.packing.bundle import pack_object
from storm_on_spark.launch.loader import LoadError, load
from storm_on_spark.runtime.run.spec import pickled_whole

Write = Callable[..., Path]

HEAD = """
import sys
from storm_on_spark import ConfigurableTopology, StormSubmitter, TopologyBuilder
from storm_on_spark.testing import ListSpout

def builder(tasks=1):
    made = TopologyBuilder()
    made.set_spout("words", ListSpout(["a"], fields=["word"]), tasks)
    return made
"""
PROGRAM = """
class Words(ConfigurableTopology):
    def run(self, args):
        self.conf.setdefault("my.tasks", 2)
        return self.submit("my words", self.conf, builder(self.conf["my.tasks"]))

def main():
    sys.exit(ConfigurableTopology.start(Words(), sys.argv[1:]))

if __name__ == "__main__":
    main()
"""


def test_a_class_is_the_topology(module: Write) -> None:
    target = load(str(module(HEAD + PROGRAM, head="")))
    assert target.conf == {"topology.name": "my words", "my.tasks": 2}
    assert target.topology(target.conf)["words"].parallelism == 2
    assert target.topology({**target.conf, "my.tasks": 3})["words"].parallelism == 3


@pytest.mark.parametrize(("more", "said"), [((), "tasks: 2\n"), (("-c", "my.tasks=3"), "tasks: 3\n")])
def test_what_a_program_prints_is_shown_once(module: Write, more: tuple[str, ...], said: str) -> None:
    code = PROGRAM.replace("return self.submit", 'print("tasks:", self.conf["my.tasks"])\n        return self.submit')
    done = CliRunner().invoke(main, ["explain", str(module(HEAD + code, head="")), *more])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(said)
    assert done.stdout.count("tasks: ") == 1


def test_what_it_prints_before_it_fails_is_shown(module: Write, capsys: pytest.CaptureFixture[str]) -> None:
    target = load(str(module(f"{HEAD}\ndef main():\n    print('so far')\n    1 / 0\n", head="")))
    with pytest.raises(LoadError, match="ZeroDivisionError"):
        assert target.conf
    assert capsys.readouterr().out == "so far\n"


@pytest.mark.parametrize(
    "signature", ["def main():\n    args = []", "def main(args):\n    assert args", "def main(args=()):\n    pass"]
)
def test_main_with_storm_submitter_is_the_topology(module: Write, signature: str) -> None:
    code = (
        f"{HEAD}\n{signature}\n    StormSubmitter.submit_topology('w', {{'my.key': 1}}, builder().create_topology())\n"
    )
    target = load(str(module(code, head="")))
    assert target.conf == {"topology.name": "w", "my.key": 1}
    assert len(target.topology({}).spouts) == 1


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("pass", InvalidTopologyError, "submitted nothing; it must submit one topology"),
        ("StormSubmitter.submit_topology('w', {}, builder())", InvalidTopologyError, "not a Topology"),
        ("1 / 0", LoadError, r":\d+: ZeroDivisionError"),
    ],
)
def test_a_program_that_submits_nothing_good(module: Write, body: str, error: type[Exception], message: str) -> None:
    target = load(str(module(f"{HEAD}\ndef main():\n    {body}\n", head="")))
    with pytest.raises(error, match=message):
        target.topology({})


def test_without_storm_submitter_main_is_no_topology(module: Write) -> None:
    with pytest.raises(LoadError, match="neither a topology nor a function build"):
        load(str(module("def main(): pass", head="")))


SCRIPT = """
import sys
from pathlib import Path
from storm_on_spark import BaseBasicBolt, TopologyBuilder
from storm_on_spark.cluster.code.packing.bundle import pack_object
from storm_on_spark.runtime.run.spec import pickled_whole
from storm_on_spark.testing import ListSpout
from helper_of_mine import SUFFIX

class Shout(BaseBasicBolt):
    def execute(self, tup, collector):
        collector.emit([tup[0] + SUFFIX])

    def declare_output_fields(self, declarer):
        from storm_on_spark import Fields
        declarer.declare(Fields("word"))

if __name__ == "__main__":
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["a"], fields=["word"]))
    builder.set_bolt("shout", Shout()).shuffle_grouping("words")
    topology = builder.create_topology()
    packed = pack_object(topology, pickled_whole(topology), Path(sys.argv[1]), conf={"my.key": 1})
    print(packed.entry, *packed.packed)
"""
ELSEWHERE = """
import sys
from storm_on_spark.launch.loader import load
topology = load(sys.argv[1]).topology({})
print(type(topology["shout"].component).__name__, topology["shout"].component.execute.__globals__["SUFFIX"])
"""


def test_an_object_is_packed_with_what_its_script_imports(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    (there / "helper_of_mine.py").write_text("SUFFIX = '!'\n")
    (there / "script.py").write_text(SCRIPT)
    (here / "elsewhere.py").write_text(ELSEWHERE)
    out = tmp_path / "packed"
    done = subprocess.run(
        [sys.executable, there / "script.py", out], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == ["storm_submitted_topology.py", "script.py", "helper_of_mine.py"]
    assert json.loads((out / "conf.json").read_text()) == {"my.key": 1}
    with zipfile.ZipFile(out / "code.zip") as archive:
        archive.extractall(here / "code")
    for file in there.glob("*.*"):
        file.unlink()
    entry = here / "code" / "storm_submitted_topology.py"
    done = subprocess.run(
        [sys.executable, here / "elsewhere.py", entry], capture_output=True, text=True, check=True, cwd=here
    )
    assert done.stdout.split() == ["Shout", "!"]


def test_modules_of_components_are_packed(module: Write, tmp_path: Path) -> None:
    code = """
from storm_on_spark import BaseBasicBolt, TopologyBuilder
from storm_on_spark.testing import ListSpout

class Quiet(BaseBasicBolt):
    def execute(self, tup, collector):
        pass

builder = TopologyBuilder()
builder.set_spout("words", ListSpout(["a"], fields=["word"]))
builder.set_bolt("quiet", Quiet()).shuffle_grouping("words")
topology = builder.create_topology()
"""
    target = load(str(module(code, "quiet_topology.py", head="")))
    topology = target.topology({})
    packed = pack_object(topology, pickled_whole(topology), tmp_path / "packed", conf={})
    assert "quiet_topology.py" in packed.packed
    assert importlib.util.find_spec("storm_submitted_topology") is None
