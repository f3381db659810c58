"""`storm-spark migrate --write`: native classes do what the components that they are made from do."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from storm_on_spark.cli.main import main
from storm_on_spark.streamparse import adapt, finder
from storm_on_spark.streamparse.projects.migrate import native_code, write_native
from storm_on_spark.testing import BoltTester, make_tuple, run_spout

SOURCE = '''
"""Words."""
import itertools
import re
from collections import Counter

from streamparse import Bolt, ReliableSpout, Spout

WORD = r"\\w+"
SENTENCES = ["the cow", "the moon"]


def words_of(text):
    return re.findall(WORD, text)


class Sentences(Spout):
    outputs = ["sentence"]

    def initialize(self, conf, ctx):
        self.left = list(SENTENCES) * conf.get("times", 1)
        self.failed = []

    def next_tuple(self):
        if self.left:
            sentence = self.left.pop(0)
            self.emit([sentence], tup_id=len(self.left))

    def fail(self, tup_id):
        self.failed.append(tup_id)

    def exhausted(self):
        return not self.left


class Split(Bolt):
    outputs = ["word", "size"]

    def process(self, tup):
        """Splits."""
        if not tup.values.word:
            return
        for word in words_of(tup.values[0]):
            self.logger.info("word %s", word)
            self.emit([word, len(word)])


class Count(Bolt):
    outputs = ["word", "count"]
    step = 1

    def initialize(self, conf, ctx):
        self.counts = Counter()

    def add(self, word):
        self.counts[word] += self.step
        return self.counts[word]

    def process(self, tup):
        (word,) = tup.values
        if word == "bad":
            raise ValueError(word)
        self.emit([word, self.add(word)])


class Slow(ReliableSpout):
    pass
'''


def loaded(path: Path) -> ModuleType:
    finder.install()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "words.py").write_text(SOURCE)
    return tmp_path


def outcome(bolt: Any) -> tuple[Any, ...]:
    words = ["the", "", "cow the", "bad", "the"]
    raised = []
    tuples = [make_tuple([text], ["word"], component="words") for text in words]
    with BoltTester(bolt, [tuples[0]], name="bolt") as kit:
        for tup in tuples:
            try:
                kit.execute(tup)
            except ValueError as error:
                raised.append(str(error))
        kit.tick()
        ledger = kit.collector
        return (
            [(emission.stream, emission.values, [a["word"] for a in emission.anchors]) for emission in ledger.emitted],
            [tup["word"] for tup in ledger.acked if not tup.is_tick],
            raised,
        )


@pytest.mark.parametrize("name", ["Split", "Count"])
def test_a_native_bolt_does_what_the_original_does(project: Path, name: str) -> None:
    write_native(project)
    original = getattr(loaded(project / "words.py"), name)
    native = getattr(loaded(project / "words_native.py"), name)
    assert outcome(native()) == outcome(adapt(original))


def test_a_native_spout_does_what_the_original_does(project: Path) -> None:
    write_native(project)
    original = loaded(project / "words.py").Sentences
    native = loaded(project / "words_native.py").Sentences

    def emitted(spout: Any) -> list[Any]:
        ran = run_spout(spout, conf={"times": 2})
        return [(emission.values, emission.message_id) for emission in ran.emitted]

    found = emitted(native())
    assert len(found) == 4
    assert found == emitted(adapt(original))


def test_nothing_is_written_unless_asked_for_and_nothing_over_a_file(project: Path) -> None:
    done = CliRunner().invoke(main, ["migrate", str(project), "--json"])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in project.iterdir()) == ["words.py"]
    found = json.loads(done.stdout)
    assert found["written"] is False
    targets = {row["what"]: row["target"] for row in found["native"]}
    assert targets == dict.fromkeys(["Sentences", "Split", "Count"], "words_native.py") | {"Slow": ""}
    (project / "words_native.py").write_text("mine")
    done = CliRunner().invoke(main, ["migrate", str(project), "--write"])
    assert done.exit_code == 0, done.output
    assert "words_native.py is there, and is not written over" in done.output
    assert (project / "words_native.py").read_text() == "mine"
    assert (project / "words.py").read_text() == SOURCE


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("def process(self, tup): self.emit([1], stream='x')", "it emits with stream"),
        ("def process(self, tup): self.go()\n    def go(self): self.emit([1])", "it emits in its method go"),
        ("def process(self, tup): x = self.emit([1])", "it uses what emit returns"),
        ("def process(self, tup): self.ack(tup)", "it uses self.ack"),
        ("def process(self, tup): print(tup)", "it uses tup in another way"),
        ("def process(self, tup): print(tup.values)", "it uses tup in another way"),
        ("def process(self, tup): print(tup.values.count(1))", "it calls count of its tuple's values"),
        ("def process(self, tup): print(OTHER)", "it uses OTHER of its file, which is not a constant"),
        ("def process(self, tup): print(nowhere)", "which its file does not import by name"),
        ("def process(self, tup): print(Stream)", "it uses Stream of streamparse"),
        ("def process(self, tup): help(self)", "it uses self in another way"),
        ("def initialize(self, conf, ctx): print(ctx)\n    def process(self, tup): pass", "it uses ctx"),
        ("auto_ack = False\n    def process(self, tup): pass", "it sets auto_ack"),
        ("outputs = [Stream(['a'])]\n    def process(self, tup): pass", "Stream"),
        ("def process_tick(self, tup): pass", "it has a method process_tick"),
        ("pass", "it has no process of its own"),
        ("def prepare(self): pass\n    def process(self, tup): pass", "it has a method prepare"),
        ("def process(self, tup): collector = 1", "it uses the name collector"),
        ("def process(self, tup): f = lambda: self.emit([1])", "there is a lambda"),
        ("def process(self, tup, *more): pass", "other arguments"),
        ("def process(self, tup): print(OTHER)\n    def other(self): OTHER = 1", "it uses OTHER of its file"),
    ],
)
def test_what_is_not_simple_is_left_with_a_sentence(tmp_path: Path, body: str, why: str) -> None:
    source = f"from streamparse import Bolt, Stream\nOTHER = object()\nclass A(Bolt):\n    {body}\n"
    (tmp_path / "a.py").write_text(source)
    (native,), files = native_code(tmp_path)
    assert files == {}
    assert why in native.why
