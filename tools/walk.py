"""The way of one tuple through the code: word count runs over one line of text, and each step says where it is.

Nothing here knows the way: `sys.setprofile` watches the running code. A step is a function that is called from another
room for the first time, between the first `next_tuple` and the last `ack`. Needs no Spark: `InProcessTopology` runs
everything on this thread.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import logging
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "storm_on_spark"
FIRST, LAST = "next_tuple", "ack"
ASIDE = ("processes", "reports", "run", "storage", "values")
"""Rooms that serve all others."""
USERS = (ROOT / "jobs" / "word_count.py", PACKAGE / "api" / "component.py")
"""The user's code, and what it inherits."""

sys.path[:0] = [str(ROOT), str(ROOT / "jobs")]


@dataclass(frozen=True)
class Step:
    """A function that was called from another room."""

    file: str
    line: int
    function: str
    purpose: str


class Walk:
    """Collects steps while it is entered."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._seen: set[object] = set()
        self._docs: dict[str, dict[int, str]] = {}

    def __enter__(self) -> Walk:
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def steps(self) -> list[Step]:
        """Returns what was seen of the way, in the order in which it was first taken."""
        names = [step.function.rpartition(".")[2] for step in self._steps]
        return self._steps[names.index(FIRST) : len(names) - names[::-1].index(LAST)]

    def _on_event(self, frame: FrameType, event: str, _: object) -> None:
        code, caller = frame.f_code, frame.f_back
        if event != "call" or code in self._seen or caller is None:
            return
        path = Path(code.co_filename)
        if path.parent == Path(caller.f_code.co_filename).parent or not path.is_relative_to(ROOT):
            return
        self._seen.add(code)
        if path.parent.name in ASIDE or (not path.is_relative_to(PACKAGE / "runtime") and path not in USERS):
            return
        name = getattr(code, "co_qualname", code.co_name)
        purpose = self._purpose(path, code.co_firstlineno)
        if purpose or path in USERS:
            self._steps.append(Step(str(path.relative_to(ROOT)), code.co_firstlineno, name, purpose))

    def _purpose(self, path: Path, line: int) -> str:
        """Returns the first line of a function's docstring; nothing for one that has none."""
        docs = self._docs.get(str(path))
        if docs is None:
            docs = self._docs[str(path)] = dict(_documented(path))
        return docs.get(line, "")


def _documented(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (doc := ast.get_docstring(node)):
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            yield first, inspect.cleandoc(doc).partition("\n")[0]


def walk(text: str) -> list[Step]:
    """Counts the words of one line and returns the steps, in the order in which they were first taken."""
    import word_count

    from storm_on_spark.runtime.in_process import InProcessTopology
    from storm_on_spark.spark.compiled import compile_topology

    logging.disable(logging.WARNING)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(f"{text}\n")
        file.flush()
        conf = {**word_count.conf, word_count.INPUT: file.name}
        topology = InProcessTopology(compile_topology(word_count.build(conf), conf).graph, "walk")
        with Walk() as found:
            topology.run()
    return found.steps()


def main() -> None:
    """Prints the steps, room by room."""
    parser = argparse.ArgumentParser(prog="make walk", description=__doc__.partition("\n")[0])
    parser.add_argument("text", nargs="?", default="storm", help="the line of text (storm)")
    room = ""
    for number, step in enumerate(walk(parser.parse_args().text), 1):
        if (here := str(Path(step.file).parent)) != room:
            room = here
            print(f"\n{room}/")
        where = f"{Path(step.file).name}:{step.line}"
        print(f"  {number:3}  {where:28} {step.function:40} {step.purpose}")


if __name__ == "__main__":
    main()
