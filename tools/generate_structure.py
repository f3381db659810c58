"""Writes the part of docs/architecture.md that is drawn from the import contracts; another file if one is named.

The contracts are in pyproject.toml, where import-linter checks them. What a package is for is the first line of its
docstring. So neither the picture nor the tables can say something else than the code.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- structure: written by tools/generate_structure.py -->", "<!-- end of structure -->"


def contracts() -> list[dict[str, Any]]:
    """Returns the contracts that order packages, the largest package first."""
    conf = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [found for found in conf["tool"]["importlinter"]["contracts"] if found["type"] == "layers"]


def floors(contract: dict[str, Any]) -> list[list[str]]:
    """Returns the modules of a contract that exist, floor by floor, the highest first."""
    (container,) = contract["containers"]
    found = [
        [name for part in layer.split("|") if exists(container, name := part.strip(" ()"))]
        for layer in contract["layers"]
    ]
    return [names for names in found if names]


def exists(container: str, name: str) -> bool:
    """Returns whether a contract's layer is there yet."""
    path = ROOT / container.replace(".", "/") / name
    return path.is_dir() or path.with_suffix(".py").is_file()


def purpose(container: str, name: str) -> str:
    """Returns the first line of a module's docstring."""
    path = ROOT / container.replace(".", "/") / name
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return doc.partition("\n")[0]


def picture(contract: dict[str, Any]) -> Iterator[str]:
    """Yields a diagram: what is above may import what is below."""
    yield "```mermaid"
    yield "flowchart TB"
    stories = floors(contract)
    for number, names in enumerate(stories):
        arrow = f" --> f{number + 1}" if number + 1 < len(stories) else ""
        yield f'  f{number}["{" · ".join(names)}"]{arrow}'
    yield "```"


def table(contract: dict[str, Any]) -> Iterator[str]:
    """Yields a row for each module, the highest first."""
    (container,) = contract["containers"]
    yield "| floor | package | what it is for |\n|---|---|---|"
    stories = floors(contract)
    for number, names in enumerate(stories):
        for name in names:
            yield f"| {len(stories) - number} | `{container}.{name}` | {purpose(container, name)} |"


def block() -> str:
    """Returns all contracts as Markdown."""
    parts = [BEGIN]
    for contract in contracts():
        (container,) = contract["containers"]
        parts += [f"\n**`{container}`**. {contract['name']}.\n", *picture(contract), "", *table(contract)]
    return "\n".join([*parts, "", END])


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    text = target.read_text(encoding="utf-8")
    target.write_text(re.sub(f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: block(), text, flags=re.S), "utf-8")
