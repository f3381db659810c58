"""Runs the topology under Storm and here, compares, and prints one line of JSON; exit code 1 if anything differs."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lab.benchmarks.contenders import storm
from lab.benchmarks.measures import ProcessTree
from lab.suite.pages import put_between
from lab.suite.tables import Table
from storm_on_spark.spark.session.jvm.java import require_java
from storm_on_spark.streamparse.submitted import VERSION

_COMPONENTS: Final = Path(__file__).with_name("components.py")
_PAGE: Final = Path(__file__).parents[2] / "docs" / "migration.md"
_BEGIN: Final = "<!-- same output: written by python -m lab.same_output --docs -->"
_END: Final = "<!-- end of same output -->"
_MOST_SECS: Final = 240
_ENTRY: Final = """from storm_on_spark.streamparse.submitted import build_submitted
import json, pathlib

topology = build_submitted(json.loads(pathlib.Path(__file__).with_name("topology.json").read_text("utf-8")))
"""

Noted = dict[str, dict[str, Counter[str]]]
"""What the tasks of each component noted: component -> task -> lines."""


def _part(cls: str, tasks: int, streams: Mapping[str, list[str]], *inputs: tuple[str, str, str, list[str]]) -> Any:
    kinds = ("component", "stream", "grouping", "fields")
    return {
        "kind": "bolt" if inputs else "spout",
        "class": cls,
        "tasks": tasks,
        "streams": {name: {"fields": fields, "direct": False} for name, fields in streams.items()},
        "inputs": [dict(zip(kinds, each, strict=True)) for each in inputs],
    }


TOPOLOGY: Final = {
    "sentences": _part("Sentences", 1, {"default": ["sentence", "attempt"]}),
    "split": _part(
        "Split",
        2,
        {"default": ["word"], "lengths": ["length"]},
        ("sentences", "default", "shuffle", []),
    ),
    "count": _part("Count", 2, {"default": ["word", "count"]}, ("split", "default", "fields", ["word"])),
    "global": _part("Noting", 2, {}, ("count", "default", "fields", [])),
    "all": _part("Noting", 2, {}, ("split", "lengths", "all", [])),
}


def main() -> int:
    """Runs both; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab.same_output", description=__doc__)
    parser.add_argument("--docs", action="store_true", help="write the table into docs/migration.md")
    options = parser.parse_args()
    storm.prepare(python=True)
    with tempfile.TemporaryDirectory() as folder:
        here, there = Path(folder, "here"), Path(folder, "storm")
        here.mkdir()
        there.mkdir()
        _run_storm(there)
        _run_here(here)
        found, expected = _noted(here), _noted(there)
    rows = {name: _compared(expected.get(name, {}), found.get(name, {})) for name in sorted({*found, *expected})}
    wrong = [f"{who}: {what}" for who, noted in (("Storm", expected), ("here", found)) for what in _broken(noted)]
    sys.stdout.write(json.dumps({"components": rows, "broken": wrong}) + "\n")
    if options.docs:
        cells = [
            (name, f"{row['storm']:,}", f"{row['here']:,}", "yes" if row["equal"] else "**no**")
            for name, row in rows.items()
        ]
        table = Table("", ("noted by", "Storm 2.8.3", "here", "equal"), cells)
        put_between(_PAGE, _BEGIN, _END, "\n".join(["", *table.markdown(), "", ""]))
    return 0 if rows and not wrong and all(row["equal"] for row in rows.values()) else 1


def _run_storm(folder: Path) -> None:
    parts = {}
    for name, part in TOPOLOGY.items():
        command = [sys.executable, str(_COMPONENTS), part["class"]]
        modules = str(storm.BUILD / "pystorm")
        parts[name] = {**part, "command": command, "modules": modules, "conf": {"same.folder": str(folder)}}
    description = folder / "topology.json"
    description.write_text(json.dumps(parts), "utf-8")
    command = storm.java_command(folder, "benchmarks.Commands", str(description), str(folder / "done"))
    _run(command, dict(os.environ))


def _run_here(folder: Path) -> None:
    parts = {}
    for name, part in TOPOLOGY.items():
        script = f"{_COMPONENTS.stem}.{part['class']}"
        conf = {"same.folder": str(folder)}
        parts[name] = {**part, "command": "streamparse_run", "script": script, "conf": conf}
    shutil.copy(_COMPONENTS, folder)
    entry = folder / "same_output_topology.py"
    entry.write_text(_ENTRY, "utf-8")
    (folder / "topology.json").write_text(json.dumps({"version": VERSION, "components": parts}), "utf-8")
    _run([sys.executable, "-m", "storm_on_spark.cli", "run", str(entry)], dict(os.environ))


def _run(command: list[str], environment: dict[str, str]) -> None:
    environment["JAVA_HOME"] = str(require_java().home)
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    tree = ProcessTree(process.pid)
    try:
        if process.wait(_MOST_SECS) != 0:
            raise SystemExit(f"{command[0]} ended with exit code {process.returncode}")
    finally:
        tree.kill()
        process.wait()


def _noted(folder: Path) -> Noted:
    found: Noted = {}
    for path in sorted(folder.glob("*.jsonl")):
        component, _, task = path.stem.rpartition("-")
        found.setdefault(component, {})[task] = Counter(filter(None, path.read_text("utf-8").split("\n")))
    return found


def _compared(there: dict[str, Counter[str]], here: dict[str, Counter[str]]) -> dict[str, Any]:
    expected, found = sum(there.values(), Counter()), sum(here.values(), Counter())
    return {"storm": expected.total(), "here": found.total(), "equal": expected == found}


def _broken(noted: Noted) -> list[str]:
    """Returns the promises of groupings that this run broke."""
    words = [{json.loads(line)[1] for line in lines} for lines in noted.get("count", {}).values()]
    every = list(noted.get("all", {}).values())
    kept = {
        "a word went to two tasks of a fields grouping": len(words) == 2 and not words[0] & words[1],
        "a task of an all grouping missed a tuple": len(every) == 2 and every[0] == every[1],
        "several tasks of a global grouping received tuples": len(noted.get("global", {})) == 1,
    }
    return [sentence for sentence, holds in kept.items() if not holds]


if __name__ == "__main__":
    sys.exit(main())
