"""From files with classes of `streamparse.Topology` to topologies: loader, projects, errors that name the place."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner, Result

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import ConfigError, InvalidTopologyError
from storm_on_spark.cli.main import main
from storm_on_spark.cluster.code.packing.collect import collect
from storm_on_spark.launch.loader import LoadError, load
from storm_on_spark.runtime.in_process import InProcessTopology
from storm_on_spark.spark.compiled import compile_topology
from storm_on_spark.streamparse.projects.project import Project, project_of

WORDS = """
    from streamparse import Spout

    class Words(Spout):
        outputs = ["word"]

        def initialize(self, conf, ctx):
            self.left = ["storm", "spark", "storm"]

        def next_tuple(self):
            if self.left:
                self.emit([self.left.pop(0)], tup_id=len(self.left))

        def exhausted(self):
            return not self.left
"""
COUNT = """
    from collections import Counter
    from pathlib import Path
    from streamparse import Bolt

    class Count(Bolt):
        outputs = ["word", "count"]

        def initialize(self, conf, ctx):
            self.counts = Counter()

        def process(self, tup):
            self.counts[tup.values.word] += 1
            Path(self.storm_conf["out"]).write_text(repr(sorted(self.counts.items())))
"""
TOPOLOGY = """
    from streamparse import Grouping, Topology
    from bolts.count import Count
    from spouts.words import Words

    class WordCount(Topology):
        config = {"topology.message.timeout.secs": 7}
        words = Words.spec(par={"prod": 3, "test": 1})
        count = Count.spec(inputs={words: Grouping.fields("word")}, par=2)
"""


@pytest.fixture
def clean_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in ("wordcount", "bolts", "spouts", "other"):
            del sys.modules[name]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean_imports: None) -> Path:
    files = {
        "config.json": json.dumps(
            {
                "topology_specs": "topologies/",
                "envs": {
                    "prod": {"options": {"topology.workers": 2}, "log": {"level": "WARN"}},
                    "test": {"options": {"topology.workers": 1}},
                },
            }
        ),
        "src/spouts/__init__.py": "",
        "src/spouts/words.py": WORDS,
        "src/bolts/__init__.py": "",
        "src/bolts/count.py": COUNT,
        "topologies/wordcount.py": TOPOLOGY,
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(content))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_a_project_runs_from_its_folder(project: Path) -> None:
    target = load("topologies/wordcount.py")
    assert target.name == "wordcount"
    conf = {**target.conf, "streamparse.environment": "test", "out": str(project / "out")}
    assert conf[Config.TOPOLOGY_MESSAGE_TIMEOUT_SECS] == 7
    info = InProcessTopology(compile_topology(target.topology(conf), conf).graph, "wordcount").run()
    assert (info.status, info.acked, info.failed) == ("COMPLETED", 3, 0)
    counts = dict(eval((project / "out").read_text()))
    assert counts in ({"storm": 2}, {"spark": 1}, {"spark": 1, "storm": 2})


def test_the_command_line_finds_the_topology_by_name_and_takes_the_options_of_sparse(project: Path) -> None:
    done = invoke("explain", "-n", "wordcount", "-e", "prod", "-a", "3", "-o", "topology.debug=true", "--json")
    assert done.exit_code == 0, done.output
    found = json.dumps(json.loads(done.stdout))
    assert '"words"' in found
    assert invoke("validate", "-e", "test").output == "topologies/wordcount.py is valid: 1 spout, 1 bolt\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-n", "wordcuont", "-e", "test"), "has no topology 'wordcuont'; there are: wordcount"),
        (("-e", "staging"), "config.json has no environment 'staging'; there are: prod, test"),
        ((), 'wordcount.py:6: class WordCount: component "words" has a parallelism for the environments'),
    ],
)
def test_what_a_project_does_not_have(project: Path, arguments: tuple[str, ...], message: str) -> None:
    done = invoke("validate", *arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_outside_of_a_project_the_target_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke("validate", "-n", "wordcount")
    assert done.exit_code == 2
    assert "Missing argument" in done.output


def test_the_code_of_a_project_is_packed_with_its_sources(project: Path) -> None:
    (project / "src" / "split.js").write_text("")
    (project / "src" / "resources").mkdir()
    (project / "src" / "resources" / "count.rb").write_text("")
    found = collect("topologies/wordcount.py")
    assert sorted(found.files) == [
        "bolts/__init__.py",
        "bolts/count.py",
        "resources/count.rb",
        "split.js",
        "spouts/__init__.py",
        "spouts/words.py",
        "wordcount.py",
    ]


TAKEN = "Requirements: virtualenvs/wordcount.txt, without streamparse and pystorm;"


def required(*arguments: str, out: Path) -> tuple[str, str]:
    """Compiles the topology; returns its requirements, and what was said of them."""
    done = invoke("compile", "-n", "wordcount", "-o", str(out), *arguments)
    assert done.exit_code == 0, done.output
    file = out / "topology" / "requirements.txt"
    said = [line for line in done.stderr.splitlines() if line.startswith("Requirements: ")]
    return file.read_text() if file.is_file() else "", "".join(said)


@pytest.mark.slow
def test_the_requirements_of_a_project_are_taken(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing is installed: each marker is for another Python."""
    out = tmp_path_factory.mktemp("out")
    path = project / "virtualenvs" / "wordcount.txt"
    path.parent.mkdir()
    path.write_text("streamparse # always\n")
    assert required("-e", "test", out=out) == ("", "")
    path.write_text('streamparse>=5\npystorm\nsix; python_version < "3"\n')
    found, said = required("-e", "test", out=out)
    assert found == 'six; python_version < "3"\n'
    assert said.startswith(TAKEN)
    with zipfile.ZipFile(out / "job.zip") as archive:
        assert {"code/wordcount.py", "code/bolts/count.py", "code/spouts/words.py"} <= set(archive.namelist())
    (project / "other.txt").write_text('streamparse; python_version < "3"\n')
    assert required("-e", "test", "-r", "other.txt", out=out) == ('streamparse; python_version < "3"\n', "")


OFF = "use_virtualenv"


@pytest.mark.parametrize(
    ("environment", "more", "taken"),
    [
        ({}, {}, True),
        ({OFF: False}, {}, False),
        ({OFF: False}, {OFF: True}, True),
        ({OFF: True, "options": {OFF: False}}, {}, True),
        ({"options": {OFF: False}}, {}, False),
        ({"install_virtualenv": False}, {}, False),
        ({OFF: False, "install_virtualenv": True}, {}, False),
        ({"virtualenv_name": "other"}, {}, True),
    ],
)
def test_options_of_virtualenvs_count_as_in_streamparse(
    tmp_path: Path, environment: dict[str, Any], more: dict[str, Any], taken: bool
) -> None:
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "words.txt").touch()
    project = Project(tmp_path, {"virtualenv_specs": "envs/", "envs": {"prod": environment}})
    path = project.requirements("words", {**project.environment_conf(None), **more})
    assert path == (tmp_path / "envs" / "words.txt" if taken else None)
    assert project.requirements("other", {}) is None


def test_wrong_options_of_virtualenvs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="use_virtualenv must be true or false, not 'no'"):
        Project(tmp_path, {}).requirements("words", {OFF: "no"})
    with pytest.raises(ConfigError, match=r'config\.json: "virtualenv_specs" must be a text, not 7'):
        Project(tmp_path, {"virtualenv_specs": 7}).requirements("words", {})


def test_java_is_refused_by_name(tmp_path: Path, clean_imports: None) -> None:
    path = tmp_path / "other.py"
    path.write_text(
        dedent(
            """
            from streamparse import Bolt, JavaSpout, Topology

            class Show(Bolt):
                pass

            class Mixed(Topology):
                lines = JavaSpout.spec(full_class_name="org.example.Lines", args_list=[1], outputs=["line"])
                show = Show.spec(inputs=[lines])
            """
        )
    )
    target = load(str(path))
    with pytest.raises(
        InvalidTopologyError,
        match=r'other\.py:7: class Mixed: component "lines" is the Java class org\.example\.Lines, and Java',
    ):
        target.topology({})


JAVA = """
from streamparse import Bolt, Grouping, JavaBolt, JavaSpout, Topology

class Upper(Bolt):
    outputs = ["key", "message"]
    def process(self, tup):
        self.emit([None, tup.values.line.upper()])

class Mixed(Topology):
    lines = JavaSpout.spec(
        full_class_name="org.apache.storm.kafka.spout.KafkaSpout", args_list=["127.0.0.1:9092", "lines"],
        outputs=["line"], par=2, config={"kafka.consumer.properties": {"group.id": "upper"}},
    )
    upper = Upper.spec(inputs=[lines])
    written = JavaBolt.spec(
        full_class_name="org.apache.storm.kafka.bolt.KafkaBolt", args_list=[], inputs=[upper],
        config={"topic": "upper", "kafka.broker.properties": {"bootstrap.servers": "127.0.0.1:9092"}},
    )
    words = JavaSpout.spec(full_class_name="org.apache.storm.testing.TestWordSpout", args_list=[True], outputs=["word"])
    counts = JavaBolt.spec(
        full_class_name="org.apache.storm.testing.TestWordCounter", args_list=[], outputs=["word", "count"],
        inputs={words: Grouping.fields("word")},
    )
"""


def test_known_java_components_are_mapped(tmp_path: Path, clean_imports: None) -> None:
    path = tmp_path / "other.py"
    path.write_text(JAVA)
    made = load(str(path)).topology({})
    assert sorted(str(made).splitlines()) == [
        "basic_bolt counts (TestWordCounter, x1) <- words fields(word) -> (word, count)",
        "bolt upper (Upper, x1) <- lines shuffle -> (key, message)",
        "bolt written (KafkaBolt, x1) <- upper shuffle",
        "spout lines (PlainKafkaSpout, x2) -> (line)",
        "spout words (TestWordSpout, x1) -> (word)",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["127.0.0.1:9092", "lines"]', "[3]", r'component "lines" .* takes the bootstrap servers .* not \[3\]'),
        ('outputs=["line"]', 'outputs=["key", "word"]', r'component "lines" .* outputs are one stream with fields of'),
        ('{"group.id": "upper"}', '{"acks": "upper"}', r'component "lines" .* needs a group\.id among kafka\.con'),
        ('"topic": "upper", ', "", r'component "written" .* needs "topic" in its configuration'),
        ('{"bootstrap.servers": "127.0.0.1:9092"}', "{}", r'component "written" .* needs bootstrap\.servers'),
        (
            '["word", "count"]',
            '["word"]',
            r'"counts" .* outputs are default: word, count; the topology declares',
        ),
        (
            'TestWordSpout", args_list=[True]',
            'TestWordCounter", args_list=[]',
            r'"words" .*Counter, which is no spout',
        ),
        ('args_list=[True], outputs=["word"]', 'args_list=[1, 2], outputs=["word"]', r'component "words" .* argument'),
        ("testing.TestWordSpout", "hdfs.X", r'component "words" is org\.apache\.storm\.hdfs\.X is a Java class: write'),
    ],
)
def test_java_that_does_not_fit_is_refused_with_a_sentence(
    tmp_path: Path, clean_imports: None, old: str, new: str, message: str
) -> None:
    path = tmp_path / "other.py"
    assert JAVA.count(old) == 1
    path.write_text(JAVA.replace(old, new))
    with pytest.raises(InvalidTopologyError, match=message):
        load(str(path)).topology({})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("words = Words.spec(par=0)", r"other\.py:11: ValueError: Parallelism hint must be .* Given: 0"),
        ("words = Words()", r"other\.py:10: TypeError: .*  ?Did you forget to call the spec class method .* as words"),
        (
            "words = Words.spec()\n    show = Show.spec(inputs={words: Grouping.fields('wrod')})",
            r"other\.py:10: ValueError: Field 'wrod' .* 'words'",
        ),
        ("show = Show.spec(inputs=[])", r"other\.py:10: ValueError: Show \"show\" requires at least one input"),
    ],
)
def test_a_wrong_class_is_refused_with_its_line(tmp_path: Path, clean_imports: None, body: str, message: str) -> None:
    path = tmp_path / "other.py"
    path.write_text(
        "from streamparse import Bolt, Grouping, Spout, Topology\n\nclass Words(Spout):\n    outputs = ['word']\n\n"
        f"class Show(Bolt):\n    pass\n\n\nclass Wrong(Topology):\n    {body}\n"
    )
    with pytest.raises(LoadError, match=message):
        load(str(path))


@pytest.mark.parametrize(
    ("outputs", "name", "message"),
    [
        (["word"], "a\x1b[2J", r"the id of a spout must have no control characters, not 'a\\x1b\[2J'"),
        (["a\x1b"], "words", r"field 0 must have no control characters, not 'a\\x1b'"),
    ],
)
def test_names_with_control_characters_are_refused(
    tmp_path: Path, clean_imports: None, outputs: list[str], name: str, message: str
) -> None:
    path = tmp_path / "other.py"
    path.write_text(
        f"from streamparse import Spout, Topology\n\nclass Words(Spout):\n    outputs = {outputs!r}\n\n"
        f"class Named(Topology):\n    words = Words.spec(name={name!r})\n"
    )
    with pytest.raises(InvalidTopologyError, match=message):
        load(str(path)).topology({})


def test_two_topologies_in_a_file_are_told_apart_by_name(tmp_path: Path, clean_imports: None) -> None:
    path = tmp_path / "other.py"
    path.write_text(
        dedent(WORDS)
        + "\nfrom streamparse import Topology\nclass A(Topology):\n    words = Words.spec()\n"
        + "class B(Topology):\n    words = Words.spec(name='lines')\n"
    )
    with pytest.raises(LoadError, match=r"several topologies; name one: .*:A, .*:B"):
        load(str(path))
    assert list(load(f"{path}:B").topology({}).components) == ["lines"]


def test_an_installed_package_comes_before_its_stand_in(tmp_path: Path) -> None:
    (tmp_path / "pystorm.py").write_text("REAL = True\n")
    code = (
        "from storm_on_spark.streamparse import finder; finder.install(); finder.install()\n"
        "import pystorm, streamparse.storm.bolt, streamparse\n"
        "print(pystorm.REAL, streamparse.Bolt is streamparse.storm.bolt.Bolt, streamparse.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True", "storm_on_spark.streamparse.stand_in.streamparse"]


@pytest.mark.parametrize("content", ["[1, 2]", "{ // a comment\n}", "[" * 200_000], ids=["list", "comment", "deep"])
def test_a_config_json_of_another_program_does_not_stop_a_topology_from_loading(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    file = tmp_path / "app" / "beside_foreign_config.py"
    file.parent.mkdir()
    file.write_text("topology = None\n")
    assert project_of(file) is None
    (tmp_path / "topologies").mkdir()
    with pytest.raises(ConfigError, match=r"config\.json"):
        project_of(file)


def test_a_config_json_with_nothing_but_environments_is_a_project_beside_topologies(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"envs": {"prod": {"options": {"a.key": 1}}}}')
    file = tmp_path / "topologies" / "words.py"
    assert project_of(file) is None
    file.parent.mkdir()
    project = project_of(file)
    assert project is not None
    assert project.environment_conf(None) == {"a.key": 1}


def test_of_several_environments_none_counts_and_a_warning_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = {"topology_specs": "topologies", "envs": {"prod": {"options": {"a.key": 1}}, "beta": {}}}
    (tmp_path / "config.json").write_text(json.dumps(content))
    project = project_of(tmp_path / "topologies" / "words.py")
    assert project is not None
    assert project.environment_conf("prod") == {"a.key": 1}
    assert caplog.text == ""
    assert project.environment_conf(None) == {}
    assert "has the environments prod, beta; none of them counts: name one by -e" in caplog.text
