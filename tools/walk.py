"""The way of one tuple through the code: word count runs over one line of text, and each step says where it is.

Nothing here knows the way: `sys.setprofile` watches the running code. A step is a function that is called for the first
time, between the first `next_tuple` and the last `ack`: from another room, or as the first one of its file. Properties
are no steps. Needs no Spark: `InProcessTopology` runs everything on this thread.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "storm_on_spark"
FIRST, LAST = "next_tuple", "ack"
ASIDE = ("in_process", "processes", "reports", "run", "storage", "values")
"""Rooms that serve all others, and the one that stands in for Spark."""
CALLED = ("__call__", "__missing__")
"""Special methods that do more than to make or to describe an object."""
USERS = (ROOT / "jobs" / "word_count.py", PACKAGE / "api" / "component.py")
"""The user's code, and what it inherits."""

AGAIN = {
    "batches/coordinator.py": "It hears of the cut, says how far the micro-batch reaches, and takes its outcomes: "
    "calls from three processes.",
    "codec/chunk.py": "Rooms hand on bytes, as Spark, the log or another process may be between any two. Each kind of "
    "chunk has a function that writes it and one that reads it. The header goes along, read once in a process.",
    "emit/output.py": "An execution of a bolt begins, may be taken back to a mark, emits and is sealed; a spout emits, "
    "and a cut seals.",
    "tracking/lineage.py": "Roots are found for what is emitted, then for what was executed; what is new is marked.",
    "tracking/runs.py": "The acker packs outcomes, the driver joins them and splits them by spout, and the spout's "
    "process unpacks them.",
}
"""Why a file is visited more than twice."""

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
        self._files: set[Path] = set()
        self._docs: dict[str, dict[int, str]] = {}

    def __enter__(self) -> Walk:
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def steps(self) -> list[Step]:
        """Returns what was seen of the way, in the order in which it was first taken."""
        names = [step.function.rpartition(".")[2] for step in self._steps]
        return self._steps[: len(names) - names[::-1].index(LAST)]

    def _on_event(self, frame: FrameType, event: str, _: object) -> None:
        code, caller = frame.f_code, frame.f_back
        if event != "call" or code in self._seen or caller is None:
            return
        if not self._steps and code.co_name != FIRST:
            return
        path = Path(code.co_filename)
        if path.parent == Path(caller.f_code.co_filename).parent and path in self._files:
            return
        if path.parent.name in ASIDE or (path not in USERS and not path.is_relative_to(PACKAGE / "runtime")):
            return
        self._seen.add(code)
        purpose, is_door = self._look_up(path, code)
        if is_door:
            self._files.add(path)
            name = getattr(code, "co_qualname", code.co_name).replace(".<locals>", "")
            self._steps.append(Step(str(path.relative_to(ROOT)), code.co_firstlineno, name, purpose))

    def _look_up(self, path: Path, code: CodeType) -> tuple[str, bool]:
        """Returns the first line of a function's docstring, and whether it is a step: values that are read are none."""
        docs = self._docs.get(str(path))
        if docs is None:
            docs = self._docs[str(path)] = dict(_functions(path))
        return docs.get(code.co_firstlineno, ("", False))


def _functions(path: Path) -> Iterator[tuple[int, tuple[str, bool]]]:
    """Yields line, purpose and whether it is a step, of each function; one without a docstring has that around it."""
    parents: list[tuple[ast.AST, str]] = [(ast.parse(path.read_text(encoding="utf-8")), "")]
    while parents:
        parent, purpose = parents.pop()
        for node in ast.iter_child_nodes(parent):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                parents.append((node, purpose))
                continue
            doc = (ast.get_docstring(node) or purpose).partition("\n")[0]
            parents.append((node, doc))
            if not isinstance(node, ast.ClassDef):
                decorators = node.decorator_list
                value = any(isinstance(each, ast.Name) and "property" in each.id for each in decorators)
                special = node.name.startswith("__") and node.name not in CALLED
                yield (decorators[0] if decorators else node).lineno, (doc, not value and not special)


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


def visits(steps: list[Step]) -> list[list[Step]]:
    """Returns the steps by visit: those that follow each other in one file."""
    return [list(visit) for _, visit in itertools.groupby(steps, key=lambda step: step.file)]


def main() -> None:
    """Prints the steps, visit by visit, and why files are visited again."""
    parser = argparse.ArgumentParser(prog="make walk", description=__doc__.partition("\n")[0])
    parser.add_argument("text", nargs="?", default="storm", help="the line of text (storm)")
    steps = walk(parser.parse_args().text)
    found, room, rooms = visits(steps), "", 0
    for number, visit in enumerate(found, 1):
        if (here := str(Path(visit[0].file).parent)) != room:
            room, rooms = here, rooms + 1
            print(f"\n{room}/")
        for step in visit:
            head = number if step is visit[0] else ""
            print(f"  {head:3}  {f'{Path(step.file).name}:{step.line}':26} {step.function:36} {step.purpose}")
    files = Counter(visit[0].file for visit in found)
    print(f"\n{len(steps)} steps in {len(found)} visits to {len(files)} files, with {rooms - 1} changes of room.")
    for file, count in files.most_common():
        if count > 2 and "/runtime/" in file:
            why = AGAIN.get(file.partition("/runtime/")[2])
            print(f"{count:3} visits to {file}{f': {why}' if why else ''}")


if __name__ == "__main__":
    main()
