"""`storm-spark migrate`: reads, never imports, and names file, line and reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from storm_on_spark.cli.main import main
from storm_on_spark.streamparse.projects.migrate import read_project

FILES = {
    "config.json": '{"topology_specs": "topologies/", "virtualenv_specs": "virtualenvs/", "envs": {"prod": {}}}',
    "virtualenvs/words.txt": "streamparse\nredis\n",
    "src/bolts.py": """import threading
from streamparse import BatchingBolt, Bolt as B

raise SystemExit("imported")

class Base(B):
    pass

class Fine(Base):
    def process(self, tup):
        self.emit([tup.values[0]])

class Old(B):
    def process(self, tup):
        self.emit_many([[1], [2]])
        threading.Thread(target=print).start()

class Batch(BatchingBolt):
    pass

class Other:
    def run(self):
        pass
""",
    "src/old.py": "print 'python 2'\n",
    "topologies/words.py": """from streamparse import Grouping, JavaSpout, Topology
from bolts import Fine, Old

class Words(Topology):
    lines = JavaSpout.spec(full_class_name="a.B", args_list=[], outputs=["line"])
    fine = Fine.spec(inputs={lines: Grouping.custom_object("a.C", [])})

class Good(Topology):
    old = Old.spec(inputs=[])
    java = JavaSpout.spec(full_class_name="org.apache.storm.kafka.spout.KafkaSpout", args_list=["h:1", "t"])
""",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def test_the_report_names_place_and_reason(project: Path) -> None:
    before = sorted(project.rglob("*"))
    done = CliRunner().invoke(main, ["migrate", str(project), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    rows = {(row["file"], row["line"], row["what"]): (row["verdict"], row["why"]) for row in found["findings"]}
    verdicts = {place: verdict for place, (verdict, _) in rows.items()}
    assert verdicts == {
        ("config.json", 1, "config.json"): "differs",
        ("topologies/words.py", 10, "Good.java"): "differs",
        ("src/bolts.py", 6, "Base"): "runs",
        ("src/bolts.py", 9, "Fine"): "runs",
        ("src/bolts.py", 15, "Old"): "no",
        ("src/bolts.py", 16, "Old"): "differs",
        ("src/bolts.py", 18, "Batch"): "differs",
        ("src/old.py", 1, "src/old.py"): "no",
        ("topologies/words.py", 4, "Words"): "no",
        ("topologies/words.py", 5, "Words.lines"): "no",
        ("topologies/words.py", 6, "Words.fine"): "no",
        ("topologies/words.py", 8, "Good"): "runs",
        ("virtualenvs/words.txt", 1, "words.txt"): "differs",
    }
    assert "pystorm 3 has no emit_many" in rows["src/bolts.py", 15, "Old"][1]
    assert "topology.tick.tuple.freq.secs" in rows["src/bolts.py", 18, "Batch"][1]
    assert (found["runs"], found["differs"], found["no"]) == (3, 5, 5)
    assert sorted(project.rglob("*")) == before


def test_the_table_is_for_people(project: Path) -> None:
    done = CliRunner().invoke(main, ["migrate", str(project)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "src/bolts.py:15" in done.output
    assert "3 run as they are, 5 with a difference, 5 do not run" in done.output


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("gone", None, "is not a folder"), ("", "[]", "must be a JSON object"), ("", "{", "can't be read")],
)
def test_what_can_not_be_read(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    done = CliRunner().invoke(main, ["migrate", str(tmp_path / name)])
    assert done.exit_code == 2
    assert message in done.output


def verdicts(folder: Path) -> dict[str, str]:
    done = CliRunner().invoke(main, ["migrate", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["findings"]
    return {f"{row['file']}:{row['what']}": row["verdict"] for row in rows}


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        ("from streamparse import Bolt\nclass A(Bolt): pass", "runs"),
        ("from streamparse import *\nclass A(Bolt): pass", "runs"),
        ("import streamparse\nclass A(streamparse.Bolt): pass", "runs"),
        ("import streamparse.bolt as b\nclass A(b.BatchingBolt): pass", "differs"),
        ("from pystorm.bolt import Bolt as Base\nclass Mine(Base): pass\nclass A(Mine): pass", "runs"),
        ("from .base import Mine\nclass A(Mine): pass", "differs"),
        ("from . import base\nclass A(base.Mine): pass", "differs"),
        ("from src.base import *\nclass A(Mine): pass", "differs"),
        ("class Bolt: pass\nclass A(Bolt): pass", None),
        ("from other import Bolt\nclass A(Bolt): pass", None),
        ("class A(A): pass", None),
        ("def make(): pass\nclass A(make()): pass", None),
    ],
)
def test_a_class_is_what_its_bases_are_where_it_stands(tmp_path: Path, source: str, verdict: str | None) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "base.py").write_text("from streamparse import BatchingBolt\nclass Mine(BatchingBolt): pass\n")
    (tmp_path / "src" / "a.py").write_text(source)
    assert verdicts(tmp_path).get("src/a.py:A") == verdict


def test_classes_of_one_name_in_two_files_are_two_classes(tmp_path: Path) -> None:
    for name, base in {"one": "Bolt", "two": "BatchingBolt"}.items():
        (tmp_path / f"{name}.py").write_text(f"from streamparse import {base}\nclass Same({base}): pass\n")
    assert verdicts(tmp_path) == {"one.py:Same": "runs", "two.py:Same": "differs"}


def test_components_of_a_topology_may_be_annotated(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(
        "from streamparse import JavaSpout, Topology\n"
        "class T(Topology):\n    lines: object = JavaSpout.spec(full_class_name='a.B')\n    later: int\n"
    )
    assert verdicts(tmp_path) == {"t.py:T": "no", "t.py:T.lines": "no"}


def test_commands_run_as_children(tmp_path: Path) -> None:
    source = "from streamparse import ShellBolt, Topology\nclass A(Topology):\n    b = ShellBolt.spec(command='node')\n"
    (tmp_path / "a.py").write_text(source)
    topology, child = read_project(tmp_path)
    assert (child.what, child.line, child.verdict) == ("A.b", 3, "differs")
    assert "child process" in child.why
    assert (topology.what, topology.verdict) == ("A", "runs")


def test_deep_code_is_read(tmp_path: Path) -> None:
    deep = "x = " + "+".join(["1"] * 20_000)
    chain = "\n".join(f"class C{number + 1}(C{number}): pass" for number in range(1_200))
    (tmp_path / "deep.py").write_text(f"from streamparse import Bolt\nclass C0(Bolt): pass\n{chain}\n")
    (tmp_path / "sum.py").write_text(deep)
    found = verdicts(tmp_path)
    assert found["deep.py:C1"] == "runs"
    assert set(found) >= {f"deep.py:C{number}" for number in range(50)}


def test_hooks_of_a_submission_are_remarked_unless_they_do_nothing(tmp_path: Path) -> None:
    started = (
        '"""As `sparse quickstart` writes it."""\n\n'
        "def pre_submit(topology_name, env_name, env_config, options):\n"
        '    """Override this function."""\n    pass\n\n\n'
        "def post_submit(topo_name, env_name, env_config, options):\n    pass\n"
    )
    for name in ("fabfile.py", "tasks.py"):
        (tmp_path / name).write_text(started)
    assert read_project(tmp_path) == []
    (tmp_path / "fabfile.py").write_text("pass\n")
    assert read_project(tmp_path) == []
    (tmp_path / "fabfile.py").write_text(started.replace("    pass\n\n", "    print(options)\n\n"))
    (tmp_path / "tasks.py").write_text("from hooks import mine as post_submit\npre_submit = print\n")
    assert [(each.file, each.line, each.what, each.verdict) for each in read_project(tmp_path)] == [
        ("fabfile.py", 3, "fabfile.py: pre_submit", "differs"),
        ("tasks.py", 1, "tasks.py: post_submit", "differs"),
        ("tasks.py", 2, "tasks.py: pre_submit", "differs"),
    ]
