"""The examples that come with the package: the topologies of the checkout's `jobs` folder."""

from __future__ import annotations

import ast
import difflib
from pathlib import Path

import storm_on_spark
from storm_on_spark.launch.loader import LoadError


def examples() -> dict[str, Path]:
    """Returns the file of each example by its name, such as `word-count`."""
    package = Path(storm_on_spark.__file__).parent
    # A wheel has them inside the package; in a checkout they are beside it.
    folder = next((path for path in (package / "examples", package.parent / "jobs") if path.is_dir()), None)
    files = [] if folder is None else sorted(folder.glob("*.py"))
    return {file.stem.replace("_", "-"): file for file in files}


def find_example(name: str) -> list[Path]:
    """Returns the files of an example, its topology first, then the other examples that it imports.

    Raises:
        LoadError: there is no such example.
    """
    found = examples()
    wanted = name.removesuffix(".py").replace("_", "-")
    if wanted not in found:
        near = difflib.get_close_matches(wanted, found, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(found) or 'none'}"
        raise LoadError(f"there is no example {name!r}; {hint}")
    by_module = {path.stem: path for path in found.values()}
    files, waiting = [], [found[wanted]]
    while waiting:
        file = waiting.pop()
        if file not in files:
            files.append(file)
            waiting += [by_module[module] for module in _imported(file) if module in by_module]
    return files


def first_sentence(file: Path) -> str:
    """Returns what the first line of an example's docstring says."""
    return (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").partition("\n")[0]


def _imported(file: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names.append(node.module)
        elif isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
    return names
