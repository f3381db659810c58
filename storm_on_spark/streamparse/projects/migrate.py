"""What of a streamparse project runs here as it is, what does not, and why. Its code is read, never imported."""

from __future__ import annotations

import ast
import dataclasses
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from storm_on_spark.api.building.java_classes import CLASSES, MAKERS
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.streamparse.projects.native import SUFFIX, Native, native_of
from storm_on_spark.streamparse.projects.project import find_project

Verdict = Literal["runs", "differs", "no"]
"""It runs as it is; it runs and something is different; it does not run."""

_MAX_FILES: Final = 5_000
_MAX_BYTES: Final = 4 << 20
_MAX_DEPTH: Final = 100
"""Classes between one of the project and streamparse's."""
_SKIPPED: Final = frozenset({"_build", "_resources", "build", "dist", "node_modules", "__pycache__", "venv"})
_MODULES: Final = ("streamparse", "pystorm")
_COMPONENTS: Final = frozenset({"Bolt", "BatchingBolt", "TicklessBatchingBolt", "Spout", "ReliableSpout"})
_JAVA: Final = frozenset({"JavaBolt", "JavaSpout"})
_CHILD: Final = "runs as a child process over multilang; what it keeps in memory is not saved with the topology's state"
_SHELL: Final = frozenset({"ShellBolt", "ShellSpout"})
_GROUPINGS: Final = {
    "custom_object": "a Java class groups; use Grouping.fields",
    "custom_serialized": "a Java object groups; use Grouping.fields",
}
_CALLS: Final = {
    "emit_many": ("no", "pystorm 3 has no emit_many; call emit for each tuple"),
    "read_message": ("no", "there is no pipe to read from"),
    "read_handshake": ("no", "there is no pipe to read from"),
    "send_message": ("differs", "messages go to the runtime; only those of Storm's protocol are taken"),
    "Thread": ("differs", "a component may emit, ack and fail only on the thread that calls it"),
    "_exit": ("differs", "the process is shared with other components; raise an exception"),
}
_OVERRIDES: Final = {
    "run": ("no", "overrides run, which is not called: there is no pipe"),
    "_run": ("differs", "overrides _run, pystorm's own loop"),
}
_KNOWN: Final = _COMPONENTS | _SHELL | _JAVA | {"Topology"}
_HOOKS: Final = ("pre_submit", "post_submit")
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
        ConfigError: it is not a folder, has too many files, or its `config.json` can't be read.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    found: list[Finding] = []
    trees: dict[str, ast.Module] = {}
    for path in _python_files(folder):
        name = path.relative_to(folder).as_posix()
        tree = _parsed(path)
        if isinstance(tree, ast.Module):
            trees[name] = tree
        else:
            found.append(Finding(name, tree.lineno or 1, name, "no", f"can't be read as Python 3: {tree.msg}"))
    kinds = _Kinds(trees)
    has_ticks = any(map(_sets_ticks, trees.values()))
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                kind = kinds.of(name, node.name)
                if kind == "Topology":
                    found += _topology(name, node)
                elif kind in _COMPONENTS:
                    found += _component(name, node, kind, has_ticks)
    found += _around(folder)
    return sorted(found, key=lambda finding: (finding.file, finding.line, finding.what))


def native_code(folder: Path) -> tuple[list[Native], dict[str, str]]:
    """Returns what becomes of a project's components, and the code of the native ones by its new file's place.

    Args:
        folder: as for `read_project`.

    Raises:
        ConfigError: as `read_project`.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    parsed = {path.relative_to(folder).as_posix(): _parsed(path) for path in _python_files(folder)}
    trees = {name: tree for name, tree in parsed.items() if isinstance(tree, ast.Module)}
    kinds = _Kinds(trees)
    found: list[Native] = []
    files: dict[str, str] = {}
    for name, tree in trees.items():
        classes = {node.name: kinds.of(name, node.name) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        try:
            natives, code = native_of(name, tree, {key: kind for key, kind in classes.items() if kind in _COMPONENTS})
        except RecursionError:
            found.append(Native(name, 1, name, "", "its code is nested too deep"))
            continue
        found += natives
        if code:
            files[name.removesuffix(".py") + SUFFIX] = code
    return found, files


def write_native(folder: Path) -> list[Native]:
    """Writes the native classes of a project's simple components beside them; a file that is there stays as it is.

    Returns:
        What became of each component.

    Raises:
        ConfigError: as `read_project`, or a file can't be written.
    """
    found, files = native_code(folder)
    kept: set[str] = set()
    for name, code in files.items():
        try:
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(code)
        except FileExistsError:
            kept.add(name)
        except OSError as error:
            raise ConfigError(f"{folder / name} can't be written: {error.strerror}") from error
    return [
        dataclasses.replace(native, target="", why=f"{native.target} is there, and is not written over")
        if native.target in kept
        else native
        for native in found
    ]


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


@dataclass
class _Names:
    """What the names of one file stand for, in the order in which Python would find them."""

    classes: dict[str, list[ast.expr]]
    """The bases of its classes, by name; of two with one name, those of the later one."""
    imported: dict[str, tuple[str, str]]
    """Module and name in it; the name is empty where a module is imported."""
    stars: list[str]
    """Modules of which every name is imported."""


class _Kinds:
    """Finds which of streamparse's classes a class is derived from, also by way of other classes of the project.

    Args:
        trees: the project's files.
    """

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._names = {file: _names_in(tree) for file, tree in trees.items()}
        self._files = {file.removesuffix(".py").removesuffix("/__init__"): file for file in trees}

    def of(self, file: str, name: str, seen: frozenset[tuple[str, str]] = frozenset()) -> str | None:
        """Returns the name of streamparse's class that `name` is in a file, or is derived from."""
        names = self._names[file]
        if (file, name) in seen or len(seen) > _MAX_DEPTH:
            return None
        seen |= {(file, name)}
        if name in names.classes:
            return next((kind for base in names.classes[name] if (kind := self._of_base(file, base, seen))), None)
        places = [names.imported[name]] if name in names.imported else [(module, name) for module in names.stars]
        return next((kind for module, inner in places if (kind := self._at(file, module, inner, seen))), None)

    def _of_base(self, file: str, base: ast.expr, seen: frozenset[tuple[str, str]]) -> str | None:
        if isinstance(base, ast.Name):
            return self.of(file, base.id, seen)
        if not isinstance(base, ast.Attribute):
            return None
        dotted = _dotted(base.value)
        module, inner = self._names[file].imported.get(dotted, (dotted, ""))
        return self._at(file, f"{module}.{inner}" if inner else module, base.attr, seen)

    def _at(self, file: str, module: str, name: str, seen: frozenset[tuple[str, str]]) -> str | None:
        if module.partition(".")[0] in _MODULES:
            return name if name in _KNOWN else None
        path = module.lstrip(".").replace(".", "/")
        # The folder that modules are imported from isn't known: the file nearest to this one counts.
        fits = [known for place, known in self._files.items() if known != file and f"/{place}".endswith(f"/{path}")]
        nearest = max(fits, key=lambda known: len(os.path.commonpath([known, file])), default=None)
        return None if nearest is None else self.of(nearest, name, seen)


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, _last(node)]))


def _names_in(tree: ast.Module) -> _Names:
    found = _Names({}, {}, [])
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found.classes[node.name] = node.bases
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                if alias.name == "*":
                    found.stars.append(module)
                else:
                    found.imported[alias.asname or alias.name] = module, alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    found.imported[alias.asname] = alias.name, ""
    return found


def _sets_ticks(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and _TICKS in node.value
        for node in ast.walk(tree)
    )


def _topology(file: str, topology: ast.ClassDef) -> Iterator[Finding]:
    problems = 0
    for statement in topology.body:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or not isinstance(statement.value, ast.Call):
            continue
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        name, call = _last(target), statement.value
        what = f"{topology.name}.{name}"
        if isinstance(call.func, ast.Attribute) and call.func.attr == "spec":
            if _last(call.func.value) in _JAVA:
                verdict, why = _java(call)
                problems += verdict == "no"
                yield Finding(file, statement.lineno, what, verdict, why)
            if _last(call.func.value) in _SHELL:
                yield Finding(file, statement.lineno, what, "differs", _CHILD)
        for node in ast.walk(call):
            if isinstance(node, ast.Attribute) and node.attr in _GROUPINGS:
                problems += 1
                yield Finding(file, node.lineno, what, "no", _GROUPINGS[node.attr])
    if not problems:
        yield Finding(file, topology.lineno, topology.name, "runs", "a topology")
    else:
        yield Finding(file, topology.lineno, topology.name, "no", f"a topology with {problems} refused: see its lines")


def _java(call: ast.Call) -> tuple[Verdict, str]:
    given = next((item.value for item in call.keywords if item.arg == "full_class_name"), None)
    name = given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
    known = MAKERS.get(name) or CLASSES.get(name)
    if known is not None:
        return "differs", f"{name} is Java; {known} stands for it, if its arguments fit"
    return "no", "Java components do not run here; write it in Python"


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
            for hook, line in _hooks(folder / name):
                yield Finding(name, line, f"{name}: {hook}", "differs", "not called when a topology is submitted")
    specs = folder / "virtualenvs" if project is None else project.virtualenvs
    for path in sorted(specs.glob("*.txt")):
        file = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)
        why = "submit and compile take it, without streamparse and pystorm; for run, install it"
        yield Finding(file, 1, path.name, "differs", why)


def _hooks(path: Path) -> Iterator[tuple[str, int]]:
    """Yields the names that streamparse would call before or after it submits, with their lines.

    A function that does nothing is none: `sparse quickstart` writes such.
    """
    tree = _parsed(path)
    for node in () if isinstance(tree, SyntaxError) else tree.body:
        if isinstance(node, ast.FunctionDef):
            if node.name in _HOOKS and not all(map(_does_nothing, node.body)):
                yield node.name, node.lineno
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((each.asname or each.name, node.lineno) for each in node.names if _names_hook(each))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id in _HOOKS:
                    yield target.id, node.lineno


def _names_hook(name: ast.alias) -> bool:
    return (name.asname or name.name) in _HOOKS


def _does_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _last(node: ast.AST) -> str:
    """Returns the last part of a dotted name, or an empty string."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
