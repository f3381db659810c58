"""The files in conf/: current, readable, and right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from storm_on_spark.api.config import KEYS, problems_of
from storm_on_spark.launch.conf_text import read_file

ROOT = Path(__file__).parents[3]


def test_the_defaults_are_those_of_the_code(tmp_path: Path) -> None:
    written = tmp_path / "defaults.yaml"
    subprocess.run([sys.executable, str(ROOT / "tools" / "generate_defaults.py"), str(written)], check=True)
    assert written.read_text() == (ROOT / "conf" / "defaults.yaml").read_text(), "run `make docs`"


@pytest.mark.parametrize("name", ["defaults.yaml", "example.yaml"])
def test_the_files_can_be_given_to_run(name: str) -> None:
    assert problems_of(read_file(ROOT / "conf" / name)) == []


def test_every_key_is_there_with_its_default() -> None:
    found = read_file(ROOT / "conf" / "defaults.yaml")
    assert set(found) == set(KEYS)
    for name, value in found.items():
        default = KEYS[name].default
        assert value == (list(default) if isinstance(default, tuple) else default)
