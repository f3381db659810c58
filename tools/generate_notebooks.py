"""Writes notebooks/*.ipynb from the sources beside them, which Databricks opens. In another folder if one is named.

A source is Python with Databricks' markers: `# COMMAND ----------` between cells, and `# MAGIC` before each line of a
cell that begins with `%md`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "notebooks"

_FIRST = "# Databricks notebook source\n"
_BETWEEN = re.compile(r"^# COMMAND ----------\n", re.MULTILINE)
_MAGIC = re.compile(r"^# MAGIC ?", re.MULTILINE)


def notebook(source: str) -> str:
    """Returns a source as a notebook of Jupyter.

    Raises:
        ValueError: it is no source of a notebook.
    """
    if not source.startswith(_FIRST):
        raise ValueError(f"the first line of a notebook's source is {_FIRST!r}")
    cells = [_cell(number, text.strip("\n")) for number, text in enumerate(_BETWEEN.split(source[len(_FIRST) :]))]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def _cell(number: int, text: str) -> dict[str, Any]:
    common = {"id": f"cell-{number}", "metadata": {}}
    if text.startswith("# MAGIC %md\n"):
        lines = _MAGIC.sub("", text).removeprefix("%md\n").splitlines(keepends=True)
        return {"cell_type": "markdown", **common, "source": lines}
    lines = text.splitlines(keepends=True)
    return {"cell_type": "code", **common, "execution_count": None, "outputs": [], "source": lines}


if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else FOLDER
    for file in sorted(FOLDER.glob("*.py")):
        (target / f"{file.stem}.ipynb").write_text(notebook(file.read_text(encoding="utf-8")), encoding="utf-8")
