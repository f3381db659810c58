"""Others' programs, unchanged: the suites of pystorm and streamparse on the stand-ins, and a quickstart project.

Each runs in its own process, where pystorm and streamparse are not installed, or installed from their sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.integration

SUITES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("suites.yaml").read_text("utf-8"))

HIDE = """
import importlib.machinery
import sys


class Hiding(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in ("pystorm", "streamparse") else super().find_spec(name, path, target)


sys.meta_path = [Hiding if each is importlib.machinery.PathFinder else each for each in sys.meta_path]
"""
"""Begins a program in whose environment neither is installed, also where the tests' own has them."""


def python(code: str, folder: Path, *path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=200
    )


@pytest.mark.parametrize("name", list(SUITES))
def test_a_suite_fails_only_where_the_table_says(
    name: str, sources: dict[str, Path], needed: Path, tmp_path: Path
) -> None:
    # Without the package beside it, its tests find the stand-in.
    shutil.copytree(sources[name] / "test", tmp_path / "test")
    program = """
        import sys
        import pytest
        from storm_on_spark.streamparse import finder

        finder.install()
        options = "-q -p no:cacheprovider --rootdir . --continue-on-collection-errors --junit-xml results.xml test"
        pytest.main(options.split())
        assert sys.modules["NAME"].__name__.startswith("storm_on_spark.")
        """.replace("NAME", name)
    done = python(HIDE + dedent(program), tmp_path, needed, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    passed, failed = 0, set()
    for case in ElementTree.parse(tmp_path / "results.xml").iter("testcase"):
        test = f"{case.get('classname')}.{case.get('name')}".lstrip(".")
        if any(found.tag in ("failure", "error") for found in case):
            failed.add(test)
        else:
            assert len(case) == 0, f"{test} was skipped"
            passed += 1
    assert failed == set(SUITES[name]["failures"]), done.stdout
    assert passed == SUITES[name]["passed"]


RUN = """
    import sys
    from storm_on_spark.launch.loader import load
    from storm_on_spark.runtime.in_process import InProcessTopology
    from storm_on_spark.spark.compiled import compile_topology

    target = load("topologies/wordcount.py")
    graph = compile_topology(target.topology({}), {"topology.fail.fast": True}).graph
    topology = InProcessTopology(graph, target.name)
    info = topology.run(lambda: topology.info().components["count_bolt"].executed < 2000)
    count = info.components["count_bolt"]
    assert topology.failure is None, topology.failure
    assert count.executed == count.emitted == count.acked >= 2000, info
    import pystorm

    print(sys.modules["streamparse"].__file__, pystorm.__file__)
"""


def test_the_quickstart_project_runs_on_the_installed_packages(
    project: Path, sources: dict[str, Path], needed: Path
) -> None:
    done = python(dedent(RUN), project, sources["streamparse"], sources["pystorm"], needed)
    assert done.returncode == 0, done.stderr
    assert [str(sources[name]) in done.stdout for name in SUITES] == [True, True]
    assert "INFO counted [" in done.stderr


def test_the_quickstart_project_runs_on_the_stand_ins(project: Path) -> None:
    done = python(HIDE + dedent(RUN), project)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("stand_in") == 2
    assert "INFO counted [" in done.stderr
