"""What the sentence about a missing package names: the extra, and a path from which it can be installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from storm_on_spark.api.text.extras import install_extra, needs_extra

ROOT = Path(__file__).parents[4]
EXTRAS = set(
    re.findall(
        r"^(\w+) = \[",
        (ROOT / "pyproject.toml").read_text("utf-8").partition("-dependencies]")[2].partition("\n[")[0],
        re.M,
    )
)
CODE = "from storm_on_spark.api.text.extras import install_extra; print(install_extra('kafka'))"


def said(folder: Path) -> str:
    """What a Python says that has the package in `folder`, and nothing else of this project."""
    command = [sys.executable, "-S", "-c", CODE]
    return subprocess.run(
        command, cwd="/", env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the package, as pip installs it from a checkout that is named a bit unusually."""
    folder = tmp_path / "site-packages"
    (folder / "storm_on_spark-0.1.0.dist-info").mkdir(parents=True)
    (folder / "storm_on_spark-0.1.0.dist-info/METADATA").write_text("Name: storm-on-spark\nVersion: 0.1.0\n")
    shutil.copytree(ROOT / "storm_on_spark", folder / "storm_on_spark", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def origin(folder: Path, url: str) -> None:
    (folder / "storm_on_spark-0.1.0.dist-info/direct_url.json").write_text(f'{{"url": "{url}", "dir_info": {{}}}}')


def test_the_sentence_names_the_checkout_that_the_package_comes_from() -> None:
    assert install_extra("kafka") == f"pip install '{ROOT}[kafka]'"
    assert needs_extra("the shell", "shell", "prompt-toolkit") == (
        f"the shell needs prompt-toolkit, which is not installed: pip install '{ROOT}[shell]'"
    )


def test_an_installed_package_names_the_checkout_it_was_installed_from(installed: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "my checkout"
    checkout.mkdir()
    (checkout / "pyproject.toml").touch()
    origin(installed, checkout.as_uri())
    assert said(installed) == f"pip install '{checkout}[kafka]'"


@pytest.mark.parametrize("url", ["file:///gone", "https://example.org/storm-on-spark.whl", ""])
def test_without_a_checkout_the_sentence_says_where_to_type_it(installed: Path, url: str) -> None:
    if url:
        origin(installed, url)
    assert said(installed) == "pip install '.[kafka]' in the folder of Storm on Spark's source"


def test_every_extra_that_the_code_names_is_there() -> None:
    named = set()
    for path in (ROOT / "storm_on_spark").rglob("*.py"):
        text = path.read_text("utf-8")
        assert "storm-on-spark[" not in text, f"{path} names a package index that has no such package"
        named |= set(re.findall(r"needs_extra\(\s*[^\n]+?, \"(\w+)\", ", text))
        named |= set(re.findall(r"install_extra\([\"'](\w+)[\"']\)", text))
    assert named == EXTRAS - {"dev"}
