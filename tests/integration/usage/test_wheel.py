"""The wheel that users install: complete, and runs a topology outside this checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("storm_on_spark-*.whl")
    return found


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    package = ROOT / "storm_on_spark"
    source = {str(path.relative_to(ROOT)) for path in package.rglob("*") if _is_source(path)}
    jobs, conf = ROOT / "jobs", ROOT / "conf"
    source |= {f"storm_on_spark/examples/{path.relative_to(jobs)}" for path in jobs.rglob("*.*") if _is_source(path)}
    source |= {f"storm_on_spark/examples/conf/{path.name}" for path in conf.glob("*.*")}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == source
    assert "storm_on_spark/py.typed" in packed
    names = {name.rpartition("/")[2] for name in zipfile.ZipFile(wheel).namelist()}
    assert {"LICENSE", "NOTICE", "entry_points.txt"} <= names


def _is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


def test_an_installed_wheel_makes_a_project_tests_it_and_runs_it(wheel: Path, tmp_path: Path) -> None:
    """The environment has the wheel alone, and finds the libraries of this one."""
    environment = tmp_path / "an environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    packages = Path(
        subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        ).strip()
    )
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", str(wheel)],
        check=True,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
    # A path in a .pth file is not searched for further .pth files: the editable install of this checkout stays unseen.
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")

    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command: object) -> str:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    where = run(python, "-c", "import storm_on_spark; print(storm_on_spark.__file__)")
    assert Path(where.strip()).is_relative_to(environment)
    storm_spark = environment / "bin" / "storm-spark"
    run(storm_spark, "new", "my project")
    assert "3 passed" in run(python, "-m", "pytest", "-p", "no:cacheprovider", "my project")
    document = json.loads(run(storm_spark, "run", "my project/topology.py", "--json"))
    assert document["topology"] == "my-project"
    assert (document["acked"], document["failed"], document["pending"]) == (400, 0, 0)
    assert {"word": "the", "count": 400} in document["result"]
    # Its notebook, cell by cell, as a notebook runs it.
    cells = json.loads((tmp_path / "my project" / "explore.ipynb").read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    (tmp_path / "my project" / "cells.py").write_text(f"{code}\nassert {{'word': 'the', 'count': 400}} in counts\n")
    assert "400 emitted, 400 acked, 0 failed" in run(python, "my project/cells.py")

    run(storm_spark, "new", "copy", "--example", "exclamation")
    run(storm_spark, "validate", "copy/exclamation.py")
