"""Finds the user's files that belong to a topology, from the name that a command was given."""

from __future__ import annotations

import os
import re
import stat
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path

from storm_on_spark.api.topology import Topology
from storm_on_spark.cluster.code.packing import archive
from storm_on_spark.cluster.code.packing.archive import MAX_ENTRIES, MAX_FILE_BYTES, MAX_TOTAL_BYTES
from storm_on_spark.cluster.code.packing.imports import EVERYWHERE, beside, imported_names
from storm_on_spark.cluster.errors import CodeError
from storm_on_spark.flux.target import FluxTarget
from storm_on_spark.launch.loader import FRONT_ENDS, load
from storm_on_spark.streamparse.projects.project import source_folders

_CACHES = frozenset({"__pycache__", "node_modules", "spark-warehouse", "metastore_db"})
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_PACKAGE = Path(__file__).resolve().parents[3]
_MOST_SENTENCES = 50
_RESOURCES = "resources"


@dataclass
class Collected:
    """The contents of the archive."""

    entry: str
    files: dict[str, Path | bytes] = field(default_factory=dict)
    """Name in the archive -> where the file is, or its content."""
    packed: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    total: int = 0

    def add_file(self, path: Path, name: str) -> None:
        """Takes a file, or says why not.

        Raises:
            CodeError: all files together are too many or too large.
        """
        problem = archive.name_problem(name)
        if problem is not None:
            return self.leave_out(path, f"its name {problem}")
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return self.leave_out(path, "no regular file")
        if status.st_size > MAX_FILE_BYTES:
            return self.leave_out(
                path, f"{status.st_size >> 20:,} MiB; a file may have {MAX_FILE_BYTES >> 20:,} MiB. Put data elsewhere"
            )
        self.total += status.st_size
        self.files[name] = path
        if len(self.files) > MAX_ENTRIES or self.total > MAX_TOTAL_BYTES:
            raise CodeError(
                f"{path}: with it there are {len(self.files):,} files of {self.total >> 20:,} MiB; a topology may have "
                f"{MAX_ENTRIES:,} of {MAX_TOTAL_BYTES >> 20:,} MiB"
            )
        return None

    def add_folder(self, folder: Path, name: str, top: Path) -> None:
        """Takes all files below a folder, but for what is not code.

        Args:
            folder: the folder.
            name: its name in the archive.
            top: links that lead to files below it are followed, others are not.
        """
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            path = Path(entry.path)
            if entry.name in _CACHES or entry.name.endswith((".pyc", ".pyo", ".egg-info")):
                continue
            if entry.name.startswith("."):
                self.leave_out(path, "hidden files, such as .git and .env, are not packed")
            elif entry.is_symlink():
                real = path.resolve()
                if real.is_file() and real.is_relative_to(top.resolve()):
                    self.add_file(real, f"{name}/{entry.name}")
                else:
                    self.leave_out(path, "a link that leads to no file in the package")
            elif not entry.is_dir():
                self.add_file(path, f"{name}/{entry.name}")
            elif (path / "pyvenv.cfg").exists():
                self.leave_out(path, "a virtual environment; name what it has in a requirements file")
            else:
                self.add_folder(path, f"{name}/{entry.name}", top)

    def leave_out(self, path: Path, why: str) -> None:
        """Notes that something is not packed."""
        if len(self.left_out) < _MOST_SENTENCES:
            self.left_out.append(f"{path} is left out: {why}.")
        elif len(self.left_out) == _MOST_SENTENCES:
            self.left_out.append("More is left out.")


def collect(target: str) -> Collected:
    """Finds the code that `target` names; see `bundle.pack`.

    Raises:
        CodeError: there is none.
    """
    archived = re.fullmatch(r"(.+\.(?:whl|zip))(?::(.+))?", target)
    if archived and Path(archived[1]).is_file():
        return _archive(Path(archived[1]), archived[2])
    where, attribute = _split(target)
    path = Path(where)
    if path.is_dir():
        found = _package(path.resolve(), where)
    elif path.suffix in FRONT_ENDS:
        found = _described(where)
    elif where.endswith(".py") or os.sep in where:
        found = _file(path, where)
    else:
        found = _module(where)
    entry = found.entry.partition(":")[0]
    if not has_entry(found.files, entry):
        raise CodeError(" ".join([f"{where} itself can't be packed:", *found.left_out]))
    if attribute:
        found.entry += f":{attribute}"
    return found


def collect_modules(topology: Topology) -> Collected:
    """Finds the code of a topology's components: their modules, the program's script, and what these import.

    What is installed is left to the cluster.

    Raises:
        CodeError: it is too large.
    """
    found = Collected("")
    names = [cls.__module__ for spec in topology.components.values() for cls in type(spec.component).__mro__]
    for name in dict.fromkeys([*names, "__main__"]):
        file = getattr(sys.modules.get(name), "__file__", None)
        path = None if file is None else Path(file).resolve()
        if path is None or path.suffix != ".py" or not path.is_file() or _is_installed(path):
            continue
        part = _file(path, str(path))
        found.files |= part.files
        found.packed += [piece for piece in part.packed if piece not in found.packed]
        found.left_out += part.left_out
    return found


def _is_installed(path: Path) -> bool:
    if _INSTALLED.intersection(path.parts) or path.is_relative_to(_PACKAGE):
        return True
    return path.is_relative_to(Path(sysconfig.get_path("stdlib")).resolve())


def _split(target: str) -> tuple[str, str]:
    where, colon, attribute = target.rpartition(":")
    if colon and attribute.isidentifier() and not Path(target).exists():
        return where, attribute
    return target, ""


def _package(folder: Path, where: str) -> Collected:
    if not (folder / "__init__.py").is_file():
        inside = sorted(file.name for file in folder.glob("*.py") if not file.name.startswith("_"))
        some = f"; name a file in it: {', '.join(inside[:5])}" if inside else ""
        raise CodeError(f"{where} is a folder, but no package: it has no __init__.py{some}")
    root = _root(folder)
    return _taken(".".join(folder.relative_to(root).parts), folder / "__init__.py", root, (root,))


def _file(path: Path, where: str) -> Collected:
    if not path.is_file():
        raise CodeError(f"there is no file {where}")
    path = path.resolve()
    root = _root(path.parent)
    # The loader puts the file's own folder before that of its package.
    sources = source_folders(path)
    folders = dict.fromkeys((path.parent, root, *sources))
    found = _taken(path.relative_to(root).as_posix(), path, root, tuple(folders))
    for folder in sources:
        _add_commands_files(found, folder)
    return _with_resources(found, root, *sources)


def _add_commands_files(found: Collected, folder: Path) -> None:
    """Takes what a streamparse project has in `src` beside its modules: the scripts of its commands."""
    for entry in sorted(folder.iterdir()):
        if entry.is_file() and entry.suffix not in (".py", ".pyc") and not entry.name.startswith("."):
            found.add_file(entry.resolve(), entry.name)
            found.packed.append(entry.name)


def _with_resources(found: Collected, *folders: Path) -> Collected:
    """Takes the folder `resources`, in which Storm's multilang components are and run; of several the first."""
    for folder in folders:
        resources = folder / _RESOURCES
        if resources.is_dir() and not (resources / "__init__.py").exists():
            found.add_folder(resources, _RESOURCES, resources)
            found.packed.append(f"{_RESOURCES}/")
            break
    return found


def _described(where: str) -> Collected:
    """Takes a file that describes a topology, and of a Flux file the modules of its classes from beside it."""
    target = load(where)
    assert target.file is not None
    folder, name = target.file.parent, target.file.name
    problem = archive.name_problem(name)
    if problem is not None:
        raise CodeError(f"{where} can't be packed: its name {problem}")
    if not isinstance(target, FluxTarget):
        return Collected(name, {name: target.file.read_bytes()}, [name])
    # A Flux file as it is understood here: placeholders have no values elsewhere.
    found = Collected(name, {name: target.interpreted()}, [name])
    needed = (beside(class_name, (folder,)) for class_name in target.class_names())
    found = _with_imports(found, [path for path in needed if path is not None], folder, (folder,))
    return _with_resources(found, folder)


def _module(name: str) -> Collected:
    if not all(part.isidentifier() for part in name.split(".")):
        raise CodeError(f"there is no file {name}, and no module can have that name")
    search: Sequence[str] = [str(Path.cwd()), *sys.path]
    path = None
    for part in name.split("."):
        spec = PathFinder.find_spec(part, list(search))
        if spec is None:
            raise CodeError(f"there is no file and no module {name}: {part} is not there")
        search = list(spec.submodule_search_locations or ())
        path = None if spec.origin is None else Path(spec.origin).absolute()
    if path is None:
        raise CodeError(f"{name} is a package without __init__.py; name a module in it")
    if path.suffix != ".py":
        raise CodeError(f"{name} is {path}, no Python file")
    depth = len(name.split(".")) + (path.name == "__init__.py")
    root = path.parents[depth - 1]
    return _taken(name, path, root, (root,))


def _taken(entry: str, path: Path, root: Path, folders: Sequence[Path]) -> Collected:
    """Takes the file, or its top-level package, and what is imported from `folders`, and so on.

    Args:
        entry: of the topology.
        path: the file.
        root: folder whose files are at the top of the archive.
        folders: where modules are looked for first. Those below `root` are in a package, which is taken whole.
    """
    whole = _whole(path, root)
    if whole.name in EVERYWHERE:
        raise CodeError(
            f"{path} belongs to {whole.name}, which is already installed on a cluster; copy the file and name that"
        )
    return _with_imports(Collected(entry), [whole], root, folders)


def _with_imports(found: Collected, waiting: list[Path], root: Path, folders: Sequence[Path]) -> Collected:
    taken: set[Path] = set()
    while waiting:
        piece = waiting.pop(0)
        if piece in taken or any(parent in taken for parent in piece.parents):
            continue
        taken.add(piece)
        name = piece.relative_to(_top(piece, root, folders)).as_posix()
        if piece.is_dir():
            found.add_folder(piece, name, piece)
        else:
            found.add_file(piece.resolve(), name)
        found.packed.append(f"{name}/" if piece.is_dir() else name)
        if not _INSTALLED.intersection(root.parts):
            waiting += _needed(found, piece, name, folders)
    return found


def _needed(found: Collected, piece: Path, name: str, folders: Sequence[Path]) -> Iterable[Path]:
    names: dict[str, None] = {}
    for file, source in found.files.items():
        if isinstance(source, Path) and file.endswith(".py") and (file == name or file.startswith(f"{name}/")):
            try:
                names |= dict.fromkeys(imported_names(source))
            except CodeError as error:
                # What is not Python is not what runs: templates, tests of parsers. The topology itself must be.
                if file == name:
                    raise
                found.leave_out(source, f"nothing that it imports is looked for ({error})")
    needed = {beside(imported, folders) for imported in names}
    return sorted(path for path in needed if path is not None and path != piece)


def _top(piece: Path, root: Path, folders: Sequence[Path]) -> Path:
    """Returns the folder whose files are at the top of the archive, of those that have the piece."""
    return next(folder for folder in (root, *folders) if piece.is_relative_to(folder))


def _root(folder: Path) -> Path:
    """Returns the folder that has the top-level package which `folder` belongs to; itself if it is not a package."""
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _whole(path: Path, root: Path) -> Path:
    top = root / path.relative_to(root).parts[0]
    return top if (top / "__init__.py").is_file() else path


def _archive(path: Path, named: str | None) -> Collected:
    files = archive.read_all(path)
    entry = named or _only_module(path, files)
    if named and named.isidentifier() and not has_entry(files, named):
        entry = f"{_only_module(path, files)}:{named}"
    if not has_entry(files, entry.partition(":")[0]):
        raise CodeError(f"{path}: there is no module {entry.partition(':')[0]} in it")
    return Collected(entry, dict(files), [path.name])


def has_entry(files: Iterable[str], entry: str) -> bool:
    """Returns whether a file or module, without an attribute, is among the names of an archive."""
    module = entry.replace(".", "/")
    return not {entry, f"{module}.py", f"{module}/__init__.py"}.isdisjoint(files)


def _only_module(path: Path, files: Iterable[str]) -> str:
    found = {name for name in files if re.fullmatch(r"[^/]+(/__init__)?\.py", name)}
    modules = sorted(name.removesuffix(".py").removesuffix("/__init__") for name in found)
    if len(modules) != 1:
        some = f"; it has {', '.join(modules[:5])}" if modules else ""
        raise CodeError(f"{path}: name the module with the topology, as {path.name}:package.module{some}")
    return modules[0]
