"""What holds the code's shape: the direction of imports, public names, files that fit on a few screens."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import storm_on_spark
from storm_on_spark.api.config import KEYS
from storm_on_spark.spark.session.local import STARTED_WITH

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "storm_on_spark"
MAX_LINES = 500


def test_imports_go_one_way() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--config", str(ROOT / "pyproject.toml")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("storm_on_spark", ("pyspark", "numpy", "pyarrow", "pandas")),
        ("storm_on_spark.plan.compile", ("pyspark", "numpy", "pyarrow", "pandas")),
        # Forked for every Python worker: nothing that starts threads may be there before the fork.
        ("storm_on_spark.spark.worker_daemon", ("pyspark", "numpy", "pyarrow", "pandas")),
        ("storm_on_spark.spark.session.jars", ("pyspark",)),
        ("storm_on_spark.cli.main", ("pyspark",)),
    ],
)
def test_importing_a_module_does_not_load_what_it_has_no_use_for(module: str, forbidden: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print(*[name for name in {forbidden!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", ["storm_on_spark", "storm_on_spark.api", "storm_on_spark.spark"])
def test_public_names_are_there(name: str) -> None:
    module = importlib.import_module(name)
    assert all(hasattr(module, public) for public in module.__all__)


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(storm_on_spark.__file__).parent / "py.typed").is_file()


def test_what_is_imported_ahead_of_a_session_is_there() -> None:
    assert all(importlib.util.find_spec(name) for name in STARTED_WITH)


def reads_of_keys(path: Path) -> list[str]:
    """Returns where a module reads keys of the table from a plain mapping: `conf[key]`, `conf.get(key)`."""

    def is_key(node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return node.value in KEYS
        return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Config"

    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        keys: list[ast.expr] = []
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            keys = [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop"):
            keys = node.args[:1]
        found += [f"line {key.lineno}: {ast.unparse(node)}" for key in keys if is_key(key)]
    return found


MAY_READ_KEYS = ("api/config/", "testing/", "streamparse/", "api/building/builder.py")
"""The key table; the test kit, which does what users do; streamparse's components, which get a plain mapping in
`prepare` and `open`, as users' do; and the builder, before anything has been checked."""


def test_code_reads_the_configuration_by_typed_settings_only() -> None:
    paths = {str(path.relative_to(PACKAGE)): path for path in PACKAGE.rglob("*.py")}
    found = {name: reads_of_keys(path) for name, path in paths.items() if not name.startswith(MAY_READ_KEYS)}
    assert {name: reads for name, reads in found.items() if reads} == {}
    # The search finds what it looks for.
    assert reads_of_keys(paths["api/building/builder.py"]) != []


def test_http_is_served_with_limits() -> None:
    """The room `cluster.http` knows how long a connection may stay, and how many there may be."""
    servers = re.compile(r"\b(from|import) (uvicorn|hypercorn|http\.server|socketserver|wsgiref|aiohttp|xmlrpc)\b")
    room = PACKAGE / "cluster" / "http"
    found = [path for path in PACKAGE.rglob("*.py") if servers.search(path.read_text("utf-8"))]
    assert {path.parent for path in found} == {room}, found


def imports(module: str, path: Path, modules: Iterable[str]) -> set[str]:
    """Returns the modules of the package that one imports: anywhere in it, also for types only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in modules else node.module)
    return (found & set(modules)) - {module}


def test_no_module_imports_itself_by_way_of_others() -> None:
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
    }
    graph = {module: imports(module, path, files) for module, path in files.items()}
    TopologicalSorter(graph).prepare()  # its CycleError names the circle
