"""The matrix of wrong inputs: what is given, how the command ends, and what its sentence has to name.

Each row is a command line. `{good}` is a valid topology, `{files}` names the folder that `FILES` is written to. What
needs Spark to go wrong is in `tests/integration/usage/test_cli.py`.
"""

from __future__ import annotations

import shlex
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from storm_on_spark.cli.main import main

Write = Callable[..., Path]

FILES: dict[str, bytes] = {
    "binary.py": b"\x7fELF\0\0\1",
    "latin.py": "name = 'ärger'\n".encode("latin-1"),
    "syntax.py": b"import os\ndef build(conf)\n    pass\n",
    "raises.py": b"\n\nraise ValueError('no such luck')\n",
    "exits.py": b"import sys\nsys.exit('enough')\n",
    "imports.py": b"import no_such_package_at_all\n",
    "empty.py": b"",
    "number.py": b"topology = 3\n",
    "builder.py": b"from storm_on_spark import TopologyBuilder\ntopology = TopologyBuilder()\n",
    "nothing.py": b"def build(conf): pass\n",
    "two.py": b"def build(conf, more): pass\n",
    "conf_list.py": b"conf = [1]\ndef build(conf): pass\n",
    "other.py": b"def make_it(conf): pass\n",
    "a.b.py": b"topology = 3\n",
    "json.py": b"topology = 3\n",
    "text.txt": b"just words\n",
    "type.yaml": b"# one\ntopology.debug: true\ntopology.workers: two\n",
    "two_wrong.yaml": b"topology.workers: 0\ntopology.debug: 3\n",
    "unknown.yaml": b"\ntopology.debugg: true\n",
    "nested.yaml": b"topology:\n  workers: 2\n",
    "list.yaml": b"- topology.workers\n",
    "word.yaml": b"hello\n",
    "broken.yaml": b"a: 1\nb: [1\nc: 2\n",
    "twice.yaml": b"topology.debug: true\ntopology.debug: false\n",
    "alias.yaml": b"a: &x [*x]\n",
    "tabs.yaml": b"a:\n\t- 1\n",
    "binary.yaml": b"\x80\x81\xff",
    "deep.yaml": b"a: " + b"[" * 3000 + b"]" * 3000,
    "huge.yaml": b"a: " + b"x" * (1 << 20) + b"\n",
    "number_key.yaml": b"1: 2\n",
    "unpicklable.py": b"""
import threading
from storm_on_spark import BaseBasicBolt, TopologyBuilder
from storm_on_spark.testing import ListSpout

class Locked(BaseBasicBolt):
    def __init__(self): self.door = threading.Lock()
    def execute(self, tup, collector): pass

def build(conf):
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["a"], fields=["word"]))
    builder.set_bolt("locked", Locked()).shuffle_grouping("words")
    return builder.create_topology()
""",
    "wrong_field.py": b"""
from storm_on_spark import TopologyBuilder
from storm_on_spark.testing import CaptureBolt, ListSpout

def build(conf):
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["a"], fields=["word"]))
    builder.set_bolt("show", CaptureBolt()).fields_grouping("words", "wrod")
    return builder.create_topology()
""",
    "wrong_source.py": b"""
from storm_on_spark import TopologyBuilder
from storm_on_spark.testing import CaptureBolt, ListSpout

def build(conf):
    builder = TopologyBuilder()
    builder.set_spout("words", ListSpout(["a"], fields=["word"]))
    builder.set_bolt("show", CaptureBolt()).shuffle_grouping("wrods")
    return builder.create_topology()
""",
    "photos/me.png": b"png",
    "full/file": b"mine",
    "conf.d/conf.yaml": b"topology.workers: many\n",
    "conf.d/topology.py": b"def build(conf): pass\n",
}

LONG = "x" * 5000

MATRIX: list[tuple[str, int, tuple[str, ...]]] = [
    # What to run.
    ("run gone.py", 2, ("there is no file gone.py",)),
    ("run god.py", 2, ("there is no file god.py", "Did you mean good.py?")),
    (f"run {LONG}.py", 2, ("there is no file", "File name too long")),
    (f"run {LONG}", 2, ("there is no file", "File name too long")),
    ("run no.such.module", 2, ("there is no file and no module no.such.module",)),
    ("run .", 2, (". is a folder",)),
    ("run binary.py", 2, ("binary.py is a binary file, not Python source",)),
    ("run latin.py", 2, ("latin.py is not Python source", "utf-8")),
    ("run text.txt", 2, ("text.txt",)),
    ("run syntax.py", 2, ("syntax.py:2: SyntaxError",)),
    ("run raises.py", 2, ("raises.py:3: ValueError: no such luck",)),
    ("run exits.py", 2, ("exits.py:2: SystemExit: enough",)),
    ("run imports.py", 2, ("imports.py:1", "no_such_package_at_all")),
    ("run empty.py", 2, ("empty.py has neither a topology nor a function build(conf)",)),
    ("run other.py", 2, ("other.py has neither", "there are make_it")),
    ("run good.py:nothing", 2, ("good.py has no attribute 'nothing'", "topology")),
    ("run number.py", 2, ("number.py: topology is 3, not a Topology",)),
    ("run builder.py", 2, ("not a Topology", "create_topology()")),
    ("run nothing.py", 2, ("build returned None, not a Topology",)),
    ("run two.py", 2, ("two.py: build takes 2 arguments", "the configuration")),
    ("run conf_list.py", 2, ("conf_list.py: conf must be a mapping", "a list")),
    ("run a.b.py", 2, ("a.b.py can't be imported as a module: its name has a dot in it",)),
    ("run json.py", 2, ("json.py has the name of another module, 'json'",)),
    ("run wrong_field.py", 2, ('"show"', "wrod", "word")),
    ("run wrong_source.py", 2, ('"show"', "wrods", "words")),
    ("run unpicklable.py", 2, ('"locked"', "door (lock)", "prepare")),
    ("validate unpicklable.py", 2, ('"locked"', "door (lock)", "prepare")),
    ("explain gone.py", 2, ("there is no file gone.py",)),
    ("validate gone.py", 2, ("there is no file gone.py",)),
    # Names and numbers on the command line.
    ("run good.py --name ''", 2, ("--name", "'' is not a name of a topology: 1 to 150 printable characters")),
    ("run good.py --name '  '", 2, ("--name", "is not a name of a topology")),
    ("run good.py --name a/b", 2, ("--name", "'a/b'", "no '/'")),
    (f"run good.py --name {LONG}", 2, ("--name", "1 to 150", "...")),
    ("run good.py --seconds abc", 2, ("--seconds", "'abc' is not a number of seconds")),
    ("run good.py --seconds 0", 2, ("--seconds", "'0' is not a number of seconds")),
    ("run good.py --seconds -1", 2, ("--seconds", "'-1' is not a number of seconds")),
    ("run good.py --seconds nan", 2, ("--seconds", "'nan' is not a number of seconds")),
    ("run good.py --seconds inf", 2, ("--seconds", "'inf' is not a number of seconds")),
    ("run good.py --second 3", 2, ("No such option", "--seconds")),
    ("run", 2, ("FILE_OR_MODULE",)),
    ("rnu good.py", 2, ("No such command", "rnu")),
    # Masters.
    ("run good.py --master locale[2]", 2, ("'locale[2]' is not a Spark master", "local[N]", "spark://HOST:PORT")),
    ("run good.py --master local[two]", 2, ("'local[two]' is not a Spark master", "local[N]")),
    ("run good.py --master local[0]", 2, ("'local[0]' is not a Spark master",)),
    ("run good.py --master local-cluster[2]", 2, ("'local-cluster[2]'", "local-cluster[WORKERS,CORES,MEGABYTES]")),
    ("run good.py --master ''", 2, ("'' is not a Spark master",)),
    ("explain good.py --master spark:/host:7077", 2, ("'spark:/host:7077' is not a Spark master", "spark://HOST:PORT")),
    # Checkpoints.
    ("run good.py --reset-checkpoint", 2, ("--reset-checkpoint needs --checkpoint DIR",)),
    ("run good.py --reset-checkpoint --checkpoint photos", 2, ("photos", "'me.png'", "not part of a checkpoint")),
    ("run good.py --checkpoint photos", 2, ("photos is not a topology's checkpoint", "'me.png'", "an empty directory")),
    # Configuration.
    ("run good.py -c topology.workers", 2, ("-c takes KEY=VALUE", "'topology.workers'")),
    ("run good.py -c =3", 2, ("-c takes KEY=VALUE", "'=3'")),
    (f"run good.py -c {LONG}", 2, ("-c takes KEY=VALUE", "...")),
    ("run good.py -c topology.workers=two", 2, ("-c topology.workers must be an int of at least 1, not 'two'",)),
    ("run good.py -c topology.workers=2.0", 2, ("-c topology.workers must be an int", "2.0")),
    ("run good.py -c topology.workres=2", 2, ('-c unknown key "topology.workres"', '"topology.workers"')),
    ("run good.py -c toplogy.workers=2", 2, ('"toplogy.workers"', '"topology.workers"')),
    ("run good.py -c 'a=[1'", 2, ("-c a: ", "'[1'")),
    ("run good.py -c topology.profile=quick", 2, ("topology.profile must be one of", "latency", "'quick'")),
    ("run good.py -c spark.driver.memory=1k", 2, ("spark.driver.memory must be an amount of at least 450m", "'1k'")),
    ("run good.py -c spark.driver.memory=lots", 2, ("spark.driver.memory must be an amount", "2g", "'lots'")),
    ("run good.py -c spark.executor.memory=-1g", 2, ("spark.executor.memory must be an amount", "'-1g'")),
    ("run good.py --conf gone.yaml", 2, ("gone.yaml can't be read", "No such file")),
    ("run good.py --conf .", 2, (". can't be read", "directory")),
    ("run good.py --conf type.yaml", 2, ("type.yaml:3: topology.workers must be an int of at least 1, not 'two'",)),
    (
        "run good.py --conf two_wrong.yaml",
        2,
        ("two_wrong.yaml:1: topology.w", "two_wrong.yaml:2: topology.d"),
    ),
    ("run good.py --conf unknown.yaml", 2, ('unknown.yaml:2: unknown key "topology.debugg"', '"topology.debug"')),
    ("run good.py --conf nested.yaml", 2, ("nested.yaml:1: keys are written in full: topology.workers: 2",)),
    ("run good.py --conf list.yaml", 2, ("list.yaml must hold keys with values", "list")),
    ("run good.py --conf word.yaml", 2, ("word.yaml must hold keys with values", "str")),
    ("run good.py --conf broken.yaml", 2, ("broken.yaml:3",)),
    ("run good.py --conf twice.yaml", 2, ("twice.yaml:2:1: 'topology.debug' is there twice",)),
    ("run good.py --conf alias.yaml", 2, ("alias.yaml:1:4", "aliases")),
    ("run good.py --conf tabs.yaml", 2, ("tabs.yaml:2",)),
    ("run good.py --conf binary.yaml", 2, ("binary.yaml",)),
    ("run good.py --conf deep.yaml", 2, ("deep.yaml:1:54: it is nested more than 50 levels deep",)),
    ("run good.py --conf huge.yaml", 2, ("huge.yaml is larger than 1048576 bytes",)),
    ("run good.py --conf number_key.yaml", 2, ("number_key.yaml:1: a key must be a string, not 1 (int)",)),
    ("validate conf.d/topology.py", 2, ("conf.d/conf.yaml:1: topology.workers must be an int",)),
    ("config no.such.key", 2, ("no configuration key matches 'no.such.key'",)),
    ("config topology.workres", 2, ("'topology.workres'", "did you mean topology.workers?")),
    # New projects.
    ("new", 2, ("storm-spark new DIR",)),
    ("new full", 2, ("full already exists and is not empty",)),
    ("new full/file", 2, ("full/file already exists",)),
    ("new full/file/in", 1, ("can't be written", "Not a directory")),
    ("new copy --example nothing", 2, ("there is no example 'nothing'", "word-count")),
    ("schema fly", 2, ("no command 'fly' prints JSON", "run, ")),
    # A cluster.
    ("list --nimbus localhost:abc", 2, ("--nimbus takes HOST:PORT with a port from 1 to 65535, not 'localhost:abc'",)),
    ("list --nimbus localhost:99999", 2, ("--nimbus takes HOST:PORT", "'localhost:99999'")),
    ("list --nimbus ''", 2, ("--nimbus takes HOST:PORT", "''")),
    ("list --nimbus http://localhost:6627", 2, ("--nimbus takes HOST:PORT", "'http://localhost:6627'")),
    ("list --nimbus 127.0.0.1:1", 1, ("no Nimbus answers at 127.0.0.1:1",)),
    ("list --token-file gone --nimbus 127.0.0.1:1", 1, ("token file gone can't be read",)),
    ("list --conf type.yaml", 2, ("type.yaml:3: topology.workers",)),
    ("kill words --wait abc", 2, ("--wait", "'abc' is not a number of seconds of at least 0")),
    ("logs words --lines many", 2, ("--lines", "'many' is not a number of lines from 0 to 100000")),
    ("rebalance words --workers 0", 2, ("--workers", "'0' is not a number of workers of at least 1")),
    ("kill", 2, ("Missing argument 'NAME'",)),
    ("kill words -w -1", 2, ("'-1' is not a number of seconds of at least 0",)),
    ("logs words -n -5", 2, ("'-5' is not a number of lines from 0 to 100000",)),
    ("rebalance words --executors split", 2, ("--executors takes COMPONENT=N", "'split'")),
    ("rebalance words --executors split=0", 2, ("not 'split=0'",)),
    ("list -c nimbus.seeds=3", 2, ("nimbus.seeds must be",)),
    ("list -c nimbus.seed=a", 2, ('Did you mean "nimbus.seeds"?',)),
    ("nimbus -c nimbus.thrift.port=0", 2, ("nimbus.thrift.port must be",)),
    ("dev -c storm.zookeper.port=1", 2, ("Did you mean",)),
    ("submit good.py --requirements nosuch.txt", 2, ("--requirements", "nosuch.txt", "does not exist")),
    ("submit good.py --name ''", 2, ("--name", "'' is not a name of a topology")),
    ("submit good.py --nimbus localhost:abc", 2, ("--nimbus takes HOST:PORT", "'localhost:abc'")),
    ("dev-zookeeper --port many", 2, ("--port", "'many' is not a port from 0 to 65535")),
    ("dev-zookeeper --port 70000", 2, ("--port", "'70000' is not a port from 0 to 65535")),
    ("run good.py --ui --ui-port {taken}", 1, ("can't listen on 127.0.0.1:{taken}: Address already in use",)),
    ("dev-zookeeper --port {taken}", 1, ("port {taken} of this host is in use by another process", "--port 0")),
    ("dev-kafka --port {taken}", 1, ("port {taken} of this host is in use by another process", "--port 0")),
    ("dev-kafka --topic lines:0", 2, ("a topic is NAME or NAME:PARTITIONS", "'lines:0'")),
    ("dev-kafka --load lines=nosuch.txt", 2, ("--load", "'lines=nosuch.txt' is not TOPIC=FILE")),
    ("dev-kafka --running", 2, ("--running needs --topic or --load",)),
    ("dev-kafka --running --topic lines --port 0", 2, ("--running", "port with --port")),
    ("dev-kafka --running --topic lines --dir kafka", 2, ("--dir", "already has a folder for its data")),
    ("dev-kafka --running --topic lines --port 1", 1, ("no Kafka answers at 127.0.0.1:1",)),
    ("dev-zookeeper --dir text.txt", 2, ("--dir", "text.txt", "is a file")),
    ("nimbus --conf type.yaml", 2, ("type.yaml:3: topology.workers",)),
    ("supervisor -c supervisor.slots.ports=1", 2, ("supervisor.slots.ports must be a list of different ports",)),
]


@pytest.fixture(scope="module")
def taken() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_the_matrix_is_large_and_has_no_row_twice() -> None:
    assert len(MATRIX) >= 60
    assert len({line for line, _, _ in MATRIX}) == len(MATRIX)


@pytest.mark.parametrize(("line", "code", "names"), MATRIX, ids=[line[:60] for line, _, _ in MATRIX])
def test_a_wrong_input_is_told(
    line: str,
    code: int,
    names: tuple[str, ...],
    module: Write,
    prepared: Path,
    taken: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    module("topology = make()", name="good.py")
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    arguments = shlex.split(line.replace("{taken}", taken))
    before = sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts)
    done = CliRunner().invoke(main, arguments)
    said = done.stderr
    assert done.exit_code == code, done.output
    assert done.stdout == "", done.stdout
    for name in names:
        assert name.replace("{taken}", taken) in said, said
    # Sentences, not a page; neither Python's words nor Java's, and no guess that we are at fault.
    # The only lines of code are the user's own.
    assert "storm_on_spark/" not in said
    assert "Traceback" not in said or line.split()[1] in ("raises.py", "exits.py", "imports.py")
    assert "importlib" not in said
    assert "mistake of storm-spark" not in said
    assert len(said) < 1500, said
    assert sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts) == before, "files were made"
