"""What docs/architecture.md says of the code is drawn from it, and `make walk` finds the way that it tells of."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = ROOT / "storm_on_spark"


def test_the_structure_is_the_contracts(tmp_path: Path) -> None:
    written = tmp_path / "architecture.md"
    written.write_text(PAGE.read_text("utf-8"), "utf-8")
    subprocess.run([sys.executable, ROOT / "tools" / "generate_structure.py", written], check=True)
    assert written.read_text("utf-8") == PAGE.read_text("utf-8"), "out of date: run make docs"


def test_the_paths_on_the_page_are_there() -> None:
    text = PAGE.read_text("utf-8")
    paths = set(re.findall(r"`((?:api|plan|launch|runtime|spark|cluster|cli|testing)/[\w/.]*)`", text))
    assert len(paths) > 20
    assert {path for path in paths if not (PACKAGE / path).exists()} == set()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 does not know the class of a method that runs")
def test_a_walk_goes_from_the_spout_to_its_ack_and_says_where() -> None:
    command = [sys.executable, ROOT / "tools" / "walk.py", "one two"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    steps = re.findall(r"^ [\d ]{4}  (\S+):(\d+) +(\S+)", said, flags=re.M)
    functions = [function for _, _, function in steps]
    assert functions[:2] == ["SpoutTask.next_tuple", "SentenceSpout.next_tuple"]
    assert functions[-1] == "BaseRichSpout.ack"
    order = ["encode_tuples", "SpoutLog.append", "read_entries", "SplitSentence.execute", "AckerState.apply"]
    assert [function for function in functions if function in order] == order
    assert {"routing.py", "collectors.py", "writer.py"} <= {name for name, _, _ in steps}
    assert "PendingMessages.following" not in functions, "a property is no step"
    rooms = re.findall(r"^(\S+)/$", said, flags=re.M)
    for room in set(rooms):
        assert (ROOT / room).is_dir()
    name, line, function = steps[functions.index("AckerState.apply")]
    source = (PACKAGE / "runtime" / "tracking" / name).read_text("utf-8").splitlines()
    assert source[int(line) - 1].strip().startswith(f"def {function.rpartition('.')[2]}(")
    often = re.findall(r"^ *(?:[3-9]|\d\d+) visits to storm_on_spark/runtime/(\S+)(?:: (.*))?$", said, flags=re.M)
    assert {file for file, _ in often} >= {"codec/chunk.py"}
    assert [file for file, why in often if not why] == [], "add to AGAIN why the tuple comes back to it"
