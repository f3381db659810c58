from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

import pytest

import storm_on_spark
from storm_on_spark import api

FILES = sorted(Path(api.__file__).parent.rglob("*.py"))


def test_all_is_sorted_and_complete() -> None:
    public = {
        name for name, value in vars(api).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public - {"annotations"} == set(api.__all__)
    assert len(set(api.__all__)) == len(api.__all__)


def test_the_package_has_the_names_of_the_api_and_those_that_need_spark() -> None:
    # Of windows, joins and DRPC it has what Storm's programs name.
    others = {
        "LocalDRPC",
        *("LocalCluster", "compile_topology", "__version__", "JoinBolt", "IntervalJoinBolt", "Count", "Duration"),
        *("BaseWindowedBolt", "BaseStatefulWindowedBolt", "IWindowedBolt", "IStatefulWindowedBolt", "TupleWindow"),
    }
    assert set(storm_on_spark.__all__) == others | set(api.__all__)
    for name in others:
        assert hasattr(storm_on_spark, name)
    for name in api.__all__:
        assert getattr(storm_on_spark, name) is getattr(api, name)
    assert {"LocalCluster", "compile_topology", "Fields"} <= set(dir(storm_on_spark))


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'LocalClutser'"):
        storm_on_spark.LocalClutser  # noqa: B018


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_api_needs_the_standard_library_only(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for node in _imports_at_run_time(tree):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        for module in modules:
            assert module.startswith("storm_on_spark.api") or module.partition(".")[0] in sys.stdlib_module_names


def _imports_at_run_time(node: ast.AST):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        yield from _imports_at_run_time(child)
