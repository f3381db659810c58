"""The examples that come with the package: the topologies of the checkout's `jobs` folder."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import storm_on_spark
from storm_on_spark.cli.shared.options import CONF_FILE
from storm_on_spark.launch.loader import LoadError

_DATA: Final = re.compile(r"\bjobs/(data/[\w.]+)")
_JOB: Final = re.compile(r"\bjobs/(\w+\.py)\b")


def examples() -> dict[str, Path]:
    """Returns the file of each example by its name, such as `word-count`."""
    package = Path(storm_on_spark.__file__).parent
    # A wheel has them inside the package; a checkout has them beside it.
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


def copy_of(name: str) -> dict[str, str]:
    """Returns the files of a project with an example, as path -> text, the topology first.

    `conf.yaml` has its configuration, and `README.md` its docstring. Paths in all of them are those of the project.

    Raises:
        LoadError: there is no such example.
    """
    sources = find_example(name)
    topology = sources[0]
    named = {f"conf/{topology.stem}.yaml": CONF_FILE}
    for source in sources:
        named |= {f"jobs/{path}": path for path in _DATA.findall(source.read_text("utf-8"))}
        named.setdefault(f"conf/{source.stem}.yaml", f"conf/{source.stem}.yaml")
    made = {source.name: source for source in sources}
    for path, new in named.items():
        # A wheel has everything in one folder, the checkout in two.
        for place in (topology.parent / path.removeprefix("jobs/"), topology.parent.parent / path):
            if place.is_file():
                made[new] = place
    texts = {path: _moved(source.read_text("utf-8"), named) for path, source in made.items()}
    about = _docstring(texts[topology.name])
    return {**texts, "README.md": f"# {name}\n\nType the lines below in this folder.\n\n{about}\n"}


def commands(text: str) -> list[str]:
    """Returns the command lines in the docstring of an example."""
    return re.findall(r"^    (storm-spark .+)$", _docstring(text), re.MULTILINE)


def first_sentence(file: Path) -> str:
    """Returns the first line of an example's docstring."""
    return _docstring(file.read_text("utf-8")).partition("\n")[0]


def _docstring(text: str) -> str:
    return ast.get_docstring(ast.parse(text)) or ""


def _moved(text: str, named: Mapping[str, str]) -> str:
    for path, new in named.items():
        text = text.replace(path, new)
    return _JOB.sub(r"\1", text)


def _imported(file: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names.append(node.module)
        elif isinstance(node, ast.Import):
            names.extend(alias.name for alias in node.names)
    return names
