"""The registry of a machine: the built-in modules, those that users compose, and those that they upload.

Each user module is a record in a folder, `<type>/<name>.json`. The file of an uploaded module is beside it, named by
its checksum. Records and files are written as a whole.
"""

from __future__ import annotations

import json
import logging
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, get_args

from storm_on_spark.api.errors import StormError
from storm_on_spark.xd.dsl import Module, Stream, parse_stream
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, ModuleType, Option, home
from storm_on_spark.xd.modules.python_files import PythonFileError, checksum, compiled, executed, read_python
from storm_on_spark.xd.modules.registry import MODULES

logger = logging.getLogger(__name__)

RECORD_VERSION: Final = 1
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,254}")
_MOST_RECORD: Final = 1_000_000
_ATTRIBUTE: Final = "MODULE"
MOST_LEVELS: Final = 10
"""Most levels of composed modules."""
_TYPES: Final[tuple[ModuleType, ...]] = get_args(ModuleType)


class ModuleRegistryError(StormError, ValueError):
    """A module that does not exist, exists already, is used by another, or can't be loaded."""


@dataclass(frozen=True)
class ComposedModule:
    """A part of a stream with a name.

    An option is `<label>.<option>` of a module inside, such as `--filter.expression`.
    """

    type: ModuleType
    name: str
    definition: str

    @property
    def help(self) -> str:
        """Its description."""
        return f"Composed of {self.definition}."

    @property
    def modules(self) -> tuple[Module, ...]:
        """The modules inside."""
        return parse_stream(self.definition, self.name).modules

    def types(self) -> tuple[ModuleType, ...]:
        """Returns the types of the modules inside."""
        return types_inside(self.type, len(self.modules))


AnyModule = ModuleDeclaration | ComposedModule


def types_inside(type: ModuleType, count: int) -> tuple[ModuleType, ...]:  # noqa: A002 # the word of the language
    """Returns the types of the modules that a module of a type can be composed of.

    >>> types_inside("source", 3)
    ('source', 'processor', 'processor')
    """
    types: list[ModuleType] = ["processor"] * count
    if type == "source":
        types[0] = type
    elif type == "sink":
        types[-1] = type
    return tuple(types)


class LocalRegistry:
    """The modules of a machine.

    Args:
        folder: of the users' modules; None for the one in `home()`. It need not exist.

    Example:
        >>> import tempfile
        >>> registry = LocalRegistry(tempfile.mkdtemp())
        >>> registry.compose("words", "splitter | filter").type
        'processor'
        >>> [found.name for found in registry.all("processor") if isinstance(found, ComposedModule)]
        ['words']
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = home() / "modules" if folder is None else Path(folder)
        self._loaded: dict[str, ModuleDeclaration] = {}

    def find(self, type: ModuleType, name: str) -> AnyModule:  # noqa: A002
        """Returns a module.

        Raises:
            KeyError: there is none.
            ModuleRegistryError: it can't be loaded.
        """
        known = MODULES.get((type, name))
        if known is not None:
            return known
        if type not in _TYPES or not _NAME.fullmatch(name):
            raise KeyError((type, name))
        record = self._record(type, name)
        if record is None:
            raise KeyError((type, name))
        if record["kind"] == "composed":
            return ComposedModule(type, name, record["definition"])
        return self._declaration(type, name, record["sha256"])

    def all(self, type: ModuleType | None = None) -> list[AnyModule]:  # noqa: A002
        """Returns all modules, or those of a type: first the built-in ones, then the users' by name.

        One that can't be loaded is left out, with a warning that says why.
        """
        found: list[AnyModule] = []
        for each in _TYPES if type is None else (type,):
            found += [module for module in MODULES.values() if module.type == each]
            for name in self._names(each):
                try:
                    found.append(self.find(each, name))
                except KeyError:
                    # The module has just been deleted.
                    continue
                except ModuleRegistryError as error:
                    logger.warning("A module is left out: %s", error)
        return found

    def options(self, module: AnyModule) -> list[Option]:
        """Returns a module's options; of a composed one, those of the modules inside.

        Raises:
            ModuleRegistryError: a module inside does not exist, or there are too many levels.
        """
        return list(self._options(module, 0))

    def names(self, type: ModuleType) -> list[str]:  # noqa: A002
        """Returns the names of the modules of a type; no module is loaded."""
        return [name for kind, name in MODULES if kind == type] + self._names(type)

    def sha256(self, type: ModuleType, name: str) -> str | None:  # noqa: A002
        """Returns the SHA-256 of an uploaded module's file, which is not loaded; None for another module, and for none.

        Raises:
            ModuleRegistryError: its record can't be read.
        """
        if (type, name) in MODULES or not _NAME.fullmatch(name):
            return None
        record = self._record(type, name)
        return None if record is None else record.get("sha256")

    def compose(self, name: str, definition: str) -> ComposedModule:
        """Composes a module from a part of a stream: a source, processors or a sink.

        Raises:
            DslError: the definition is invalid.
            ModuleRegistryError: the name is taken or invalid, or the modules are not a part of a stream.
        """
        self._check_name(name)
        stream = parse_stream(definition, name)
        composed = ComposedModule(self._type_of(stream), name, definition.strip())
        self._check_free(composed.type, name)
        self._write(composed.type, name, {"kind": "composed", "definition": composed.definition})
        return composed

    def upload(self, path: str | os.PathLike[str]) -> ModuleDeclaration:
        """Adds the module of a Python file, whose variable `MODULE` is a `ModuleDeclaration`. The file is executed.

        Raises:
            ModuleRegistryError: it can't be loaded, or its module's name is taken.
        """
        location = os.fspath(path)
        try:
            source = read_python(location)
        except PythonFileError as error:
            raise ModuleRegistryError(str(error)) from error
        return self.upload_source(source, location)

    def upload_source(self, source: bytes, location: str) -> ModuleDeclaration:
        """Adds the module of such a file, given as bytes.

        Args:
            source: of the file.
            location: its name, for messages.

        Raises:
            ModuleRegistryError: it can't be loaded, or its module's name is taken.
        """
        try:
            compiled(source, location)
        except PythonFileError as error:
            raise ModuleRegistryError(str(error)) from error
        declaration = _loaded(source, location)
        self._check_name(declaration.name)
        self._check_free(declaration.type, declaration.name)
        sha256 = checksum(source)
        _write_whole(self._file(sha256), source)
        self._write(declaration.type, declaration.name, {"kind": "uploaded", "sha256": sha256})
        return declaration

    def delete(self, type: ModuleType, name: str) -> None:  # noqa: A002
        """Removes a user module.

        Raises:
            ModuleRegistryError: there is none, it is built in, or a composed module uses it.
        """
        if (type, name) in MODULES:
            raise ModuleRegistryError(f"{type}:{name} is built into Storm on Spark, so it can't be deleted")
        record = self._record(type, name) if type in _TYPES and _NAME.fullmatch(name) else None
        if record is None:
            raise ModuleRegistryError(f"there is no module {f'{type}:{name}'!r:.100}")
        users = sorted({f"{user.type}:{user.name}" for user in self._composed() if self._uses(user, type, name)})
        if users:
            raise ModuleRegistryError(f"{type}:{name} can't be deleted: {', '.join(users)} is composed of it")
        self._remove(type, name)
        if record["kind"] == "uploaded" and record["sha256"] not in self._checksums():
            self._file(record["sha256"]).unlink(missing_ok=True)

    def _options(self, module: AnyModule, level: int) -> Iterator[Option]:
        if isinstance(module, ModuleDeclaration):
            yield from module.options
            return
        if level == MOST_LEVELS:
            raise ModuleRegistryError(f"{module.type}:{module.name} has more than {MOST_LEVELS} levels")
        for inside, type_ in zip(module.modules, module.types(), strict=True):
            given = dict(inside.options)
            try:
                found = self.find(type_, inside.name)
            except KeyError:
                raise ModuleRegistryError(
                    f"{module.type}:{module.name} is composed of {type_}:{inside.name}, which does not exist"
                ) from None
            for option in self._options(found, level + 1):
                name = option.given(given)
                default = option.default if name is None else given[name]
                also = tuple(f"{inside.label}.{each}" for each in option.also)
                yield replace(option, name=f"{inside.label}.{option.name}", default=default, also=also)

    def _type_of(self, stream: Stream) -> ModuleType:
        if stream.source is not None or stream.sink is not None:
            raise ModuleRegistryError("a module is composed of modules only, without channels and taps")
        if len(stream.modules) == 1:
            raise ModuleRegistryError("a module is composed of at least two modules")
        first, last = stream.modules[0], stream.modules[-1]
        found: ModuleType = "processor"
        # A source and a sink may share a name; the position at an end decides.
        if not self._is("processor", first.name):
            found = "source"
        elif not self._is("processor", last.name):
            found = "sink"
        for module, type_ in zip(stream.modules, types_inside(found, len(stream.modules)), strict=True):
            if not self._is(type_, module.name):
                raise ModuleRegistryError(
                    f"a module is composed of a source and processors, of processors, or of processors and a sink; "
                    f"{module.name:.100} is no {type_}"
                )
        return found

    def _is(self, type: ModuleType, name: str) -> bool:  # noqa: A002
        return (type, name) in MODULES or (_NAME.fullmatch(name) is not None and self._has(type, name))

    def _has(self, type: ModuleType, name: str) -> bool:  # noqa: A002
        return self._path(type, name).is_file()

    def _uses(self, composed: ComposedModule, type: ModuleType, name: str) -> bool:  # noqa: A002
        inside = zip(composed.modules, composed.types(), strict=True)
        return any((module.name, kind) == (name, type) for module, kind in inside)

    def _composed(self) -> Iterator[ComposedModule]:
        for kind in _TYPES:
            for name in self._names(kind):
                record = self._record(kind, name)
                if record is not None and record["kind"] == "composed":
                    yield ComposedModule(kind, name, record["definition"])

    def _checksums(self) -> set[str]:
        records = [self._record(kind, name) for kind in _TYPES for name in self._names(kind)]
        return {record["sha256"] for record in records if record is not None and record["kind"] == "uploaded"}

    def _check_name(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise ModuleRegistryError(f"expected a name of letters, digits, '_' and '-', got {name!r:.100}")

    def _check_free(self, type: ModuleType, name: str) -> None:  # noqa: A002
        if self._is(type, name):
            raise ModuleRegistryError(f"there is already a module {type}:{name}")

    def _declaration(self, type: ModuleType, name: str, sha256: str) -> ModuleDeclaration:  # noqa: A002
        if sha256 not in self._loaded:
            path = self._file(sha256)
            try:
                source = read_python(str(path))
            except PythonFileError as error:
                raise ModuleRegistryError(f"module {type}:{name}: {error}") from error
            if checksum(source) != sha256:
                raise ModuleRegistryError(f"module {type}:{name}: {path} was changed; delete and upload it again")
            self._loaded[sha256] = _loaded(source, str(path))
        found = self._loaded[sha256]
        if (found.type, found.name) != (type, name):
            raise ModuleRegistryError(f"module {type}:{name}: its file declares {found.type}:{found.name}")
        return found

    def _names(self, type: ModuleType) -> list[str]:  # noqa: A002
        return sorted(path.stem for path in (self._folder / type).glob("*.json") if _NAME.fullmatch(path.stem))

    def _record(self, type: ModuleType, name: str) -> dict[str, str] | None:  # noqa: A002
        path = self._path(type, name)
        try:
            with path.open("rb") as file:
                found = json.loads(file.read(_MOST_RECORD))
            return checked_record(found)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise ModuleRegistryError(f"module {type}:{name}: {path} can't be read: {error}") from error

    def _write(self, type: ModuleType, name: str, record: Mapping[str, str]) -> None:  # noqa: A002
        _write_whole(self._path(type, name), json.dumps({"version": RECORD_VERSION, **record}).encode())

    def _remove(self, type: ModuleType, name: str) -> None:  # noqa: A002
        self._path(type, name).unlink(missing_ok=True)

    def _path(self, type: ModuleType, name: str) -> Path:  # noqa: A002
        return self._folder / type / f"{name}.json"

    def _file(self, sha256: str) -> Path:
        return self._folder / "files" / f"{sha256}.py"


def checked_record(found: Any) -> dict[str, str]:
    """Returns the record of a module.

    Raises:
        ValueError: it is something else.
    """
    if not isinstance(found, dict) or found.get("version") != RECORD_VERSION:
        raise ValueError(f"expected a record of version {RECORD_VERSION}")
    if found.get("kind") == "composed" and isinstance(found.get("definition"), str):
        return found
    if found.get("kind") == "uploaded" and re.fullmatch("[0-9a-f]{64}", str(found.get("sha256"))):
        return found
    raise ValueError("expected a composed module with its definition, or an uploaded one with its SHA-256")


def _loaded(source: bytes, location: str) -> ModuleDeclaration:
    try:
        found = getattr(executed(source, location), _ATTRIBUTE, None)
    except (Exception, SystemExit) as error:
        raise ModuleRegistryError(f"{location} raised {type(error).__name__}: {error}") from error
    if not isinstance(found, ModuleDeclaration) or found.type not in _TYPES:
        raise ModuleRegistryError(f"{location}: expected a variable {_ATTRIBUTE} with a ModuleDeclaration")
    return found


def _write_whole(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}-{uuid.uuid4().hex}.tmp")
    try:
        half.write_bytes(content)
        half.replace(path)
    except OSError:
        half.unlink(missing_ok=True)
        raise
