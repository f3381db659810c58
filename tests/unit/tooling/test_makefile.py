"""What `make` hands to the command line, and what it says on a machine that lacks something."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from storm_on_spark.launch.conf_text import parse_pair

ROOT = Path(__file__).parents[3]


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    found = shutil.which("make")
    assert found is not None
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | environment
    return subprocess.run([found, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", ["plain.txt", 'it\'s "a: #1" {file}, *.txt a=b $x ünï', "null", "2024", "-x"])
def test_any_path_reaches_the_job_as_it_is(tmp_path: Path, path: str) -> None:
    shown = tmp_path / "shown"
    script = tmp_path / "bin" / "storm-spark"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > '{shown}'\n")
    script.chmod(0o755)
    stamp = tmp_path / "stamp"
    stamp.touch()
    done = make("run", f"INPUT={path}", f"VENV={tmp_path}", f"RUN_STAMP={stamp}")
    assert done.returncode == 0, done.stderr
    given = shown.read_text().splitlines()
    assert given[:3] == ["run", "jobs/word_count.py", "-c"]
    assert parse_pair(given[3]) == ("word.count.input", path)


def test_only_a_run_begins_without_the_development_tools(tmp_path: Path) -> None:
    assert "requirements.lock" in make("-n", "run", f"VENV={tmp_path}").stdout
    assert "requirements-dev.lock" not in make("-n", "run", f"VENV={tmp_path}").stdout
    # What the package needs comes first, and a change of it makes the rest look again.
    setup = make("-n", "test-unit", f"VENV={tmp_path}").stdout
    assert 0 <= setup.index("requirements.lock") < setup.index("requirements-dev.lock")


def test_both_locks_name_the_same_versions() -> None:
    small, whole = (
        set(re.findall(r"^([\w.-]+==\S+)", (ROOT / name).read_text(), re.MULTILINE))
        for name in ("requirements.lock", "requirements-dev.lock")
    )
    assert {name.partition("==")[0] for name in small} >= {"pyspark", "pyarrow", "click", "hatchling"}
    assert small < whole


def test_help_is_the_default_and_names_every_target() -> None:
    listed = re.findall(r"^  make ([a-z-]+) +\S", make().stdout, re.MULTILINE)
    targets = re.findall(r"^\.PHONY: ([a-z-]+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed == [target for target in targets if target != "java"]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH with a shell and little else."""
    for tool in ("sh", "awk", "cat", "cksum", "cut"):
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / tool).symlink_to(found)
    return tmp_path


def test_without_python_a_sentence_says_how_to_get_it(bare: Path) -> None:
    done = make("run", PATH=str(bare))
    assert done.returncode != 0
    assert done.stderr.startswith("Python 3.10 or newer is needed and there is no python3 here: install it")


def test_a_python_that_is_too_old_is_named(bare: Path) -> None:
    old = bare / "python3"
    old.write_text('#!/bin/sh\ncase "$2" in *version_info*) exit 1;; *) echo 3.8.10;; esac\n')
    old.chmod(0o755)
    done = make("test", PATH=str(bare))
    assert "there is only Python 3.8.10 here" in done.stderr


def test_a_newer_python_under_another_name_is_found(bare: Path) -> None:
    (bare / "python3.12").symlink_to(sys.executable)
    done = subprocess.run(
        ["sh", str(ROOT / "tools" / "find-python.sh")],
        env={"PATH": str(bare)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(bare / "python3.12")
