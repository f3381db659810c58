"""The libraries for multilang that come with the package: found where a component's code brings none."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from storm_on_spark.multilang import ShellBolt
from storm_on_spark.testing import BoltTester, make_tuple

COMPONENTS = {
    "python": ("exclaim.py", """
import storm

class Exclaim(storm.BasicBolt):
    def process(self, tup):
        storm.emit([tup.values[0] + "!"])

Exclaim().run()
"""),
    "node": ("exclaim.js", """
const BasicBolt = require('./storm').BasicBolt;

function Exclaim() {
    BasicBolt.call(this);
}
Exclaim.prototype = Object.create(BasicBolt.prototype);
Exclaim.prototype.process = function (tup, done) {
    this.emit({tuple: [tup.values[0] + '!'], anchorTupleId: tup.id}, (tasks) => done());
};
new Exclaim().run();
"""),
    "ruby": ("exclaim.rb", """
require "./storm"

class Exclaim < Storm::Bolt
  def process(tup)
    emit([tup.values[0] + "!"], anchor: tup)
    ack(tup)
  end
end
Exclaim.new.run
"""),
}  # fmt: skip
OWN = {
    "python": ("storm.py", "raise RuntimeError('the one of the folder')"),
    "node": ("storm.js", "throw new Error('the one of the folder')"),
    "ruby": ("storm.rb", "raise 'the one of the folder'"),
}


@pytest.fixture(params=COMPONENTS)
def language(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None and request.param != "python":
        pytest.skip(f"there is no {request.param} here")
    return str(request.param)


@pytest.fixture
def code(language: str, tmp_path: Path) -> Path:
    """A folder with a component, and with a blank in its path."""
    folder = tmp_path / "the code"
    folder.mkdir()
    name, text = COMPONENTS[language]
    (folder / name).write_text(text)
    return folder


def bolt(language: str, code: Path, environment: dict[str, str] | None = None) -> BoltTester:
    program = sys.executable if language == "python" else language
    shell = ShellBolt([program, COMPONENTS[language][0]], ["word"], directory=str(code), environment=environment)
    return BoltTester(shell, [word("x")], name="exclaim")


def word(text: str) -> object:
    return make_tuple([text], ["word"], component="words")


def test_ours_are_found(language: str, code: Path) -> None:
    with bolt(language, code) as kit:
        kit.execute(word("ant"), word("böse ☃"))
        for _ in range(100):
            if len(kit.collector.acked) == 2:
                break
            kit.execute()
        assert kit.collector.values() == [("ant!",), ("böse ☃!",)]
        assert [emission.anchors[0]["word"] for emission in kit.collector.emitted] == ["ant", "böse ☃"]


def test_those_of_the_folder_come_first(language: str, code: Path) -> None:
    name, text = OWN[language]
    (code / name).write_text(text)
    with bolt(language, code) as kit, pytest.raises(Exception, match="the one of the folder"):
        kit.execute(word("ant"))


# Only Python's path has ours on it: the other languages have asked everywhere before.
@pytest.mark.parametrize("language", ["python"], indirect=True)
def test_those_that_the_language_finds_elsewhere_come_first(language: str, code: Path, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    name, text = OWN[language]
    (tmp_path / "site" / name).write_text(text)
    (code / "exclaim.py").write_text(
        f"import sys\nsys.path.append({str(tmp_path / 'site')!r})\n" + (code / "exclaim.py").read_text()
    )
    with bolt(language, code) as kit, pytest.raises(Exception, match="the one of the folder"):
        kit.execute(word("ant"))


def test_what_the_user_has_set_stays(language: str, code: Path, tmp_path: Path) -> None:
    variables = {"python": "PYTHONPATH", "node": "NODE_PATH", "ruby": "RUBYLIB"}
    (tmp_path / "mine").mkdir()
    with bolt(language, code, {variables[language]: str(tmp_path / "mine"), "NODE_OPTIONS": "--no-warnings"}) as kit:
        kit.execute(word("ant"))
        for _ in range(100):
            if kit.collector.acked:
                break
            kit.execute()
        assert kit.collector.values() == [("ant!",)]
