"""Finds a topology by name: `FILE.py` or `package.module`, with an optional `:ATTRIBUTE`; or a file of a front end.

A front end makes topologies from something that is not a Python module, such as a Flux file. `FRONT_ENDS` says by the
end of a file's name which package that is; its function `load_file(path, where)` returns the `Target`. Another kind
finds topologies in Python modules, such as the classes of streamparse: `MODULE_FRONT_ENDS`.
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import os
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol

from storm_on_spark.api.building.builder import TopologyBuilder
from storm_on_spark.api.errors import StormError
from storm_on_spark.api.text.wording import short_repr
from storm_on_spark.api.topology import Topology
from storm_on_spark.launch.submitted import SubmittingFrontEnd
from storm_on_spark.streamparse.front_end import StreamparseFrontEnd

ATTRIBUTES = ("topology", "build")
"""The attributes that are tried without `:ATTRIBUTE`, in this order."""

FRONT_ENDS: Final[Mapping[str, str]] = {
    ".yaml": "storm_on_spark.flux",
    ".yml": "storm_on_spark.flux",
    ".stream": "storm_on_spark.xd",
}
"""End of a file's name -> the package that loads it; imported when such a file is loaded."""


class ModuleFrontEnd(Protocol):
    """Makes topologies of what a Python module holds."""

    name: str
    """What it is called in a message."""

    def before_import(self) -> None:
        """Called before a module is imported."""

    def source_folders(self, file: Path) -> list[Path]:
        """Returns further folders of the module search path for a file."""

    def is_topology(self, value: object) -> bool:
        """Whether `build` makes a topology of a value."""

    def conf(self, value: Any) -> dict[str, Any]:
        """Returns the configuration that the topology brings along."""

    def build(self, value: Any, conf: Mapping[str, Any]) -> Topology:
        """Returns the topology."""


MODULE_FRONT_ENDS: Final[tuple[ModuleFrontEnd, ...]] = (StreamparseFrontEnd(), SubmittingFrontEnd())

_OURS = Path(__file__).parents[1]


class LoadError(StormError, ValueError):
    """The file or module with the topology can't be loaded, or holds none."""


class Target(ABC):
    """What a command was given, loaded: it makes the topology."""

    where: str
    """As it was given, without an attribute."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the topology gets by default."""

    @property
    @abstractmethod
    def file(self) -> Path | None:
        """The file that it was loaded from, if there is one."""

    @property
    @abstractmethod
    def conf(self) -> dict[str, Any]:
        """The topology's own configuration.

        Raises:
            LoadError: it is not a mapping.
        """

    @property
    def report(self) -> Callable[..., Any] | None:
        """A function `report(spark, checkpoint, info)`, called at the end of a run, if there is one.

        It returns the result, such as a list of rows.
        """
        return None

    @abstractmethod
    def topology(self, conf: Mapping[str, Any]) -> Topology:
        """Returns the topology.

        Args:
            conf: its configuration.

        Raises:
            StormError: building it failed.
            LoadError: what was found is not a topology.
        """

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function of the user; an error in it names the line of the user's code.

        Raises:
            LoadError: it raised something else than a `StormError`.
        """
        try:
            return function(*arguments)
        except StormError:
            raise
        except (Exception, SystemExit) as error:
            raise LoadError(place_of(error)) from error


@dataclass(frozen=True)
class ModuleTarget(Target):
    """A loaded module and its attribute that makes the topology."""

    where: str
    module: ModuleType
    attribute: str

    @property
    def name(self) -> str:
        """The name that the topology gets by default: that of the module, with hyphens."""
        return self.module.__name__.rpartition(".")[2].replace("_", "-")

    @property
    def file(self) -> Path | None:
        """The module's file."""
        found = getattr(self.module, "__file__", None)
        return None if found is None else Path(found)

    @property
    def conf(self) -> dict[str, Any]:
        """The module's own configuration.

        Raises:
            LoadError: its `conf` is not a mapping.
        """
        conf = getattr(self.module, "conf", None) or {}
        if not isinstance(conf, Mapping):
            raise LoadError(f"{self.where}: conf must be a mapping from keys to values, not {_a(conf)}")
        value = getattr(self.module, self.attribute)
        front_end = _front_end_of(value)
        return dict(conf) if front_end is None else {**self.call(front_end.conf, value), **conf}

    @property
    def report(self) -> Callable[..., Any] | None:
        """The module's `report(spark, checkpoint, info)`, called at the end of a run, if it has one.

        It returns the result, such as a list of rows.
        """
        hook = getattr(self.module, "report", None)
        return hook if callable(hook) else None

    def topology(self, conf: Mapping[str, Any]) -> Topology:
        """Returns the topology.

        Args:
            conf: given to the attribute if that is a function with a parameter.

        Raises:
            StormError: building it failed.
            LoadError: what was found is not a topology.
        """
        value = getattr(self.module, self.attribute)
        front_end = _front_end_of(value)
        if front_end is not None:
            found: Topology = self.call(front_end.build, value, conf)
            return found
        verb = "is"
        if callable(value) and not isinstance(value, Topology):
            needed = _arity(value)
            if needed > 1:
                raise LoadError(
                    f"{self.where}: {self.attribute} takes {needed} arguments; it may take one, the configuration"
                )
            with_conf = _wants_argument(value)
            verb = "returned"
            value = self.call(value, *([dict(conf)] if with_conf else []))
        if isinstance(value, Topology):
            return value
        hint = "; return what its create_topology() returns" if isinstance(value, TopologyBuilder) else ""
        raise LoadError(f"{self.where}: {self.attribute} {verb} {_a(value)}, not a Topology{hint}")


def load(text: str) -> Target:
    """Loads what `text` names: imports the module, or reads a file of a front end.

    A file is imported as a module: under its name, or under `package.name` if it is in a package. Its
    folder comes first on the module search path, so modules beside it can be imported, in Spark's workers
    too.

    Raises:
        LoadError: the file, module or attribute is not there, or importing failed.
    """
    where, attribute = _split(text)
    front_end = FRONT_ENDS.get(Path(where).suffix)
    if front_end is not None and attribute is None:
        found = importlib.import_module(front_end).load_file(_existing(where), where)
        assert isinstance(found, Target)
        return found
    for each in MODULE_FRONT_ENDS:
        each.before_import()
    module = _import_file(where) if _is_path(where) else _import_module(where)
    if attribute is None:
        attribute = next((name for name in ATTRIBUTES if hasattr(module, name)), None) or _foreign(module, where)
        if attribute is None:
            others = _candidates(module)
            raise LoadError(f"{where} has neither a topology nor a function build(conf) that returns one{others}")
    elif not hasattr(module, attribute):
        raise LoadError(f"{where} has no attribute {attribute!r}{_candidates(module)}")
    return ModuleTarget(where, module, attribute)


def _split(text: str) -> tuple[str, str | None]:
    where, colon, attribute = text.rpartition(":")
    if colon and attribute.isidentifier() and not _exists(text):
        return where, attribute
    return text, None


def _is_path(where: str) -> bool:
    return where.endswith(".py") or os.sep in where or _exists(where)


def _exists(where: str) -> bool:
    try:
        return Path(where).exists()
    except OSError as error:
        # Too long, for example: no file has that name, and no module either.
        raise LoadError(f"there is no file {short_repr(where)}: {error.strerror}") from error
    except ValueError as error:
        raise LoadError(f"there is no file {short_repr(where)}: {error}") from error


def _existing(where: str) -> Path:
    path = Path(where)
    _exists(where)
    if path.is_dir():
        inside = sorted(file.name for file in path.glob("*.py") if not file.name.startswith("_"))
        some = f"; name a file in it: {', '.join(inside[:5])}" if inside else ""
        raise LoadError(f"{where} is a folder{some}")
    if not path.is_file():
        alike = [file.name for file in path.parent.glob(f"*{path.suffix or '.py'}")]
        near = difflib.get_close_matches(path.name, alike, n=1)
        hint = f". Did you mean {path.parent / near[0]}?" if near else ""
        raise LoadError(f"there is no file {where}{hint}")
    return path.resolve()


def _import_file(where: str) -> ModuleType:
    path = _existing(where)
    root, name = path.parent, path.stem
    while (root / "__init__.py").is_file():
        name = f"{root.name}.{name}"
        root = root.parent
    if "." in path.stem:
        raise LoadError(f"{where} can't be imported as a module: its name has a dot in it; rename it")
    _check_source(path, where)
    further = [folder for each in MODULE_FRONT_ENDS for folder in each.source_folders(path)]
    for folder in dict.fromkeys((*further, path.parent, root)):
        search_first(folder)
    known = sys.modules.get(name)
    if known is not None and not _is_file_of(known, path):
        raise LoadError(f"{where} has the name of another module, {name!r}, that is in use already; rename it")
    module = _import(name, where)
    if not _is_file_of(module, path):
        raise LoadError(f"{where} has the name of another module, {name!r} ({module.__file__}); rename it")
    return module


def _check_source(path: Path, where: str) -> None:
    """Checks that a file can be Python source: Python itself would blame its import system.

    Raises:
        LoadError: it can't be read, or is not text.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LoadError(f"{where} can't be read: {error.strerror}") from error
    if b"\0" in content:
        raise LoadError(f"{where} is a binary file, not Python source")
    try:
        importlib.util.decode_source(content)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise LoadError(f"{where} is not Python source: {error}") from error


def _import_module(name: str) -> ModuleType:
    search_first(Path.cwd())
    return _import(name, name)


def _import(name: str, where: str) -> ModuleType:
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise LoadError(
                f"there is no file and no module {where}; modules are looked for in {Path.cwd()} and among "
                "the installed packages"
            ) from error
        raise LoadError(place_of(error)) from error
    except StormError:
        raise
    except (Exception, SystemExit) as error:
        raise LoadError(place_of(error)) from error


def search_first(folder: Path) -> None:
    """Puts a folder before all others on the module search path."""
    entry = str(folder)
    if entry in sys.path:
        sys.path.remove(entry)
    sys.path.insert(0, entry)


def _is_file_of(module: ModuleType, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == path


def _front_end_of(value: object) -> ModuleFrontEnd | None:
    return next((each for each in MODULE_FRONT_ENDS if each.is_topology(value)), None)


def _foreign(module: ModuleType, where: str) -> str | None:
    """Returns the attribute that is a topology of a front end; one of the module's own comes before imported ones.

    Raises:
        LoadError: there are several.
    """
    found = {name: value for name, value in vars(module).items() if _front_end_of(value) is not None}
    own = [name for name, value in found.items() if value.__module__ == module.__name__] or list(found)
    if len(own) > 1:
        which = ", ".join(f"{where}:{name}" for name in own)
        raise LoadError(f"{where} has several topologies; name one: {which}")
    return own[0] if own else None


def _candidates(module: ModuleType) -> str:
    found = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(value, Topology)
            or (inspect.isfunction(value) and value.__module__ == module.__name__ and _arity(value) <= 1)
        )
    ]
    return f"; there are {', '.join(sorted(found))}" if found else ""


def _wants_argument(function: Callable[..., Any]) -> bool:
    return _arity(function) == 1


def _arity(function: Callable[..., Any]) -> int:
    """Returns how many arguments `function` needs."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in positional and p.default is inspect.Parameter.empty]
    # `def build(conf=None)` wants the configuration as much as `def build(conf)` does.
    named = [p for p in parameters if p.kind in positional and p.name == "conf"]
    return max(len(needed), len(named))


def place_of(error: BaseException) -> str:
    """Returns `FILE:LINE: Type: text` for an error in the user's code, at its innermost line."""
    text = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_short(error.filename)}:{error.lineno}: SyntaxError: {error.msg}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and _OURS not in Path(frame.filename).parents
    ]
    own = [frame for frame in frames if not _installed(frame.filename)] or frames
    return f"{_short(own[-1].filename)}:{own[-1].lineno}: {text}" if own else text


def _installed(filename: str) -> bool:
    return "site-packages" in filename or filename.startswith(str(Path(os.__file__).parent))


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename


def _a(value: object) -> str:
    return f"{value!r:.80}" if value is None or isinstance(value, (str, int)) else f"a {type(value).__name__}"
