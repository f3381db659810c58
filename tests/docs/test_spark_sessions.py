"""The table of docs/spark-sessions.md against the code: what is used of PySpark that PySpark does not publish."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ROOT / "storm_on_spark" / "spark"
PAGE = ROOT / "docs" / "spark-sessions.md"
ROW = re.compile(r"^\| `([\w.]+)` \| `([\w.]+\.py)` \| .+ \|$", re.MULTILINE)
UNPUBLISHED = {"pyspark.java_gateway", "pyspark.serializers", "pyspark.util", "pyspark.core", "pyspark.worker"}


def own_names() -> set[str]:
    """Private names that this package itself defines or sets."""
    names = set()
    for file in (ROOT / "storm_on_spark").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
                names.add(node.attr)
    return names


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def uses() -> set[tuple[str, str]]:
    found = set()
    own = own_names()
    for file in CODE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and re.match(r"_(?!_)", node.attr) and not is_self(node.value):
                # A name of ours counts as PySpark's on what is obviously not ours.
                if node.attr not in own or "spark" in ast.unparse(node.value).lower():
                    found.add((node.attr, file.name))
            elif isinstance(node, ast.ImportFrom) and node.module in UNPUBLISHED:
                found.add((node.module, file.name))
            elif isinstance(node, ast.Import):
                found |= {(alias.name, file.name) for alias in node.names if alias.name in UNPUBLISHED}
    return found


@pytest.mark.slow
def test_every_use_of_what_pyspark_does_not_publish_is_in_the_table() -> None:
    table = set(ROW.findall(PAGE.read_text(encoding="utf-8")))
    assert uses() - table == set(), "used, but not in docs/spark-sessions.md"
    assert table - uses() == set(), "in docs/spark-sessions.md, but not used"
