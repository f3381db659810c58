"""`storm-spark migrate`: reads, never imports, and names file, line and reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from storm_on_spark.cli.main import main

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
    assert (found["runs"], found["differs"], found["no"]) == (3, 4, 5)
    assert sorted(project.rglob("*")) == before


def test_the_table_is_for_people(project: Path) -> None:
    done = CliRunner().invoke(main, ["migrate", str(project)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "src/bolts.py:15" in done.output
    assert "3 run as they are, 4 with a difference, 5 do not run" in done.output


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("gone", None, "is no folder"), ("", "[]", "must be a JSON object"), ("", "{", "can't be read")],
)
def test_what_can_not_be_read(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    done = CliRunner().invoke(main, ["migrate", str(tmp_path / name)])
    assert done.exit_code == 2
    assert message in done.output
