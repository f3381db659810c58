"""What of a streamparse project runs here as it is, what does not, and why. Its code is read, never imported."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.streamparse.project import find_project

Verdict = Literal["runs", "differs", "no"]
"""It runs as it is; it runs and something is different; it does not run."""

_MAX_FILES: Final = 5_000
_MAX_BYTES: Final = 4 << 20
_SKIPPED: Final = frozenset({"_build", "_resources", "build", "dist", "node_modules", "__pycache__", "venv"})
_MODULES: Final = ("streamparse", "pystorm")
_COMPONENTS: Final = frozenset({"Bolt", "BatchingBolt", "TicklessBatchingBolt", "Spout", "ReliableSpout"})
_REFUSED: Final = {
    "JavaBolt": "Java components do not run here; write it in Python",
    "JavaSpout": "Java components do not run here; write it in Python",
    "ShellBolt": "commands do not run in a streamparse topology here",
    "ShellSpout": "commands do not run in a streamparse topology here",
}
_GROUPINGS: Final = {
    "custom_object": "a Java class groups; use Grouping.fields",
    "custom_serialized": "a Java object groups; use Grouping.fields",
}
_CALLS: Final = {
    "emit_many": ("no", "pystorm 3 has no emit_many; call emit for each tuple"),
    "read_message": ("no", "there is no pipe to read from"),
    "read_handshake": ("no", "there is no pipe to read from"),
    "send_message": ("differs", "messages go to the runtime; only those of Storm's protocol are taken"),
    "report_metric": ("differs", "the metric goes to the component's log"),
    "Thread": ("differs", "a component may emit, ack and fail only on the thread that calls it"),
    "_exit": ("differs", "the process is shared with other components; raise an exception"),
}
_OVERRIDES: Final = {
    "run": ("no", "overrides run, which is not called: there is no pipe"),
    "_run": ("differs", "overrides _run, pystorm's own loop"),
}
_TICKS: Final = "topology.tick.tuple.freq.secs"


@dataclass(frozen=True)
class Finding:
    """One row of the report."""

    file: str
    """Relative to the project."""
    line: int
    what: str
    """A topology, a class, a component of a topology, or a file."""
    verdict: Verdict
    why: str


def read_project(folder: Path) -> list[Finding]:
    """Returns what is found in a project, by file and line.

    Args:
        folder: with `config.json`, or just with Python files.

    Raises:
        ConfigError: it is no folder, has too many files, or its `config.json` can't be read.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder")
    found: list[Finding] = []
    trees: dict[str, ast.Module] = {}
    for path in _python_files(folder):
        name = path.relative_to(folder).as_posix()
        tree = _parsed(path)
        if isinstance(tree, ast.Module):
            trees[name] = tree
        else:
            found.append(Finding(name, tree.lineno or 1, name, "no", f"can't be read as Python 3: {tree.msg}"))
    kinds = _kinds(trees.values())
    has_ticks = any(_TICKS in ast.dump(tree) for tree in trees.values())
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                if kinds.get(node.name) == "Topology":
                    found += _topology(name, node)
                elif kinds.get(node.name) in _COMPONENTS:
                    found += _component(name, node, kinds[node.name], has_ticks)
    found += _around(folder)
    return sorted(found, key=lambda finding: (finding.file, finding.line, finding.what))


def _python_files(folder: Path) -> Iterator[Path]:
    count = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _SKIPPED and not Path(place, name, "pyvenv.cfg").exists()
        )
        for name in sorted(files):
            if name.endswith(".py"):
                count += 1
                if count > _MAX_FILES:
                    raise ConfigError(f"{folder} has more than {_MAX_FILES:,} Python files; is it a project?")
                yield Path(place, name)


def _parsed(path: Path) -> ast.Module | SyntaxError:
    try:
        content = path.read_bytes()
        if len(content) > _MAX_BYTES:
            return SyntaxError(f"it has {len(content):,} bytes; at most {_MAX_BYTES:,} are read")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(content, str(path))
    except SyntaxError as error:
        return error
    except (OSError, ValueError, RecursionError) as error:
        return SyntaxError(str(error))


def _kinds(trees: Any) -> dict[str, str]:
    """Returns for each class which of streamparse's it is derived from, also by way of other classes of the project."""
    bases: dict[str, list[str]] = {}
    for tree in trees:
        renamed = {
            alias.asname or alias.name: alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in _MODULES
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names = [_last(base) for base in node.bases]
                bases[node.name] = [renamed.get(name, name) for name in names]
    kinds = {name: name for name in (*_COMPONENTS, *_REFUSED, "Topology")}
    for _ in bases:
        before = len(kinds)
        for name, parents in bases.items():
            kind = next((kinds[parent] for parent in parents if parent in kinds), None)
            if kind is not None:
                kinds.setdefault(name, kind)
        if len(kinds) == before:
            break
    return kinds


def _topology(file: str, topology: ast.ClassDef) -> Iterator[Finding]:
    problems = 0
    for statement in topology.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        name, call = _last(statement.targets[0]), statement.value
        what = f"{topology.name}.{name}"
        if isinstance(call.func, ast.Attribute) and call.func.attr == "spec":
            refused = _REFUSED.get(_last(call.func.value))
            if refused:
                problems += 1
                yield Finding(file, statement.lineno, what, "no", refused)
        for node in ast.walk(call):
            if isinstance(node, ast.Attribute) and node.attr in _GROUPINGS:
                problems += 1
                yield Finding(file, node.lineno, what, "no", _GROUPINGS[node.attr])
    if not problems:
        yield Finding(file, topology.lineno, topology.name, "runs", "a topology")
    else:
        yield Finding(file, topology.lineno, topology.name, "no", f"a topology with {problems} refused: see its lines")


def _component(file: str, component: ast.ClassDef, kind: str, has_ticks: bool) -> Iterator[Finding]:
    what, found = component.name, False
    for node in ast.walk(component):
        hit: tuple[str, str] | None = None
        if isinstance(node, ast.Call):
            hit = _CALLS.get(_last(node.func))
        elif isinstance(node, ast.FunctionDef) and node in component.body:
            hit = _OVERRIDES.get(node.name)
        elif isinstance(node, ast.Attribute) and node.attr == "stdin":
            hit = ("no", "there is no pipe to read from")
        if hit is not None and isinstance(node, (ast.expr, ast.stmt)):
            found = True
            verdict: Verdict = "no" if hit[0] == "no" else "differs"
            yield Finding(file, node.lineno, what, verdict, hit[1])
    if kind == "BatchingBolt" and not has_ticks:
        found = True
        why = f"gets no ticks: nothing in the project's code sets {_TICKS}; give it by -o, or in the bolt's config"
        yield Finding(file, component.lineno, what, "differs", why)
    if not found:
        yield Finding(file, component.lineno, what, "runs", f"a {kind}; its attributes are state and survive a crash")


def _around(folder: Path) -> Iterator[Finding]:
    project = find_project(folder)
    if project is not None:
        environments = ", ".join(project.environments) or "none"
        why = f"options and log level count for the environments {environments}; hosts and SSH settings have no effect"
        yield Finding("config.json", 1, "config.json", "differs", why)
    if (folder / "project.clj").is_file():
        yield Finding("project.clj", 1, "project.clj", "differs", "not read: nothing is packed for Java")
    for name in ("fabfile.py", "tasks.py"):
        if (folder / name).is_file():
            yield Finding(name, 1, name, "differs", "pre_submit and post_submit are not called")
    specs = "virtualenvs" if project is None else str(project.config.get("virtualenv_specs") or "virtualenvs")
    for path in sorted((folder / specs).glob("*.txt")):
        file = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)
        why = "install it where you run, or give it to submit by --requirements; streamparse itself is not needed"
        yield Finding(file, 1, path.name, "differs", why)


def _last(node: ast.AST) -> str:
    """Returns the last part of a dotted name, or an empty string."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
