"""A topology's code as files: packed by the client, unpacked where the driver runs.

code.zip            what goes on the module search path
topology.json       TopologyFile: where in it the topology is
conf.json           its configuration
plan.json           its components, tasks and subscriptions (`PlanSummary`)
requirements.txt    packages to install, as pip reads it
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from storm_on_spark import __version__
from storm_on_spark.api.topology import Topology
from storm_on_spark.cluster.code.checksums import (
    CODE,
    CONF,
    MAX_BYTES,
    PLAN,
    REQUIREMENTS,
    TOPOLOGY,
    check_artifacts,
    copy_verified,
    read_verified,
)
from storm_on_spark.cluster.code.folders import make_private
from storm_on_spark.cluster.code.packing import archive
from storm_on_spark.cluster.code.packing.collect import Collected, collect, collect_modules, has_entry
from storm_on_spark.cluster.code.packing.requirements import Requirements
from storm_on_spark.cluster.errors import CodeError, RecordError
from storm_on_spark.cluster.records import CodeManifest, Record, decode, encode
from storm_on_spark.launch.loader import FRONT_ENDS

_ENTRIES = frozenset({".py", *FRONT_ENDS})
"""Ends of the names of files that can be a topology's entry."""


class TopologyFile(Record, frozen=True):
    """The contents of `topology.json`."""

    entry: str
    """`folder/FILE.py` or `FILE.yaml` in the archive, or `package.module`, with an optional `:ATTRIBUTE`."""
    python: str
    """Version of Python that packed it, as `3.11`."""
    release: str = ""
    """Version of Storm on Spark that packed it."""
    packed: tuple[str, ...] = ()
    """Its contents, for people: modules, packages, an archive."""


@dataclass(frozen=True)
class Packed:
    """The files of a topology, ready to be uploaded."""

    files: tuple[Path, ...]
    entry: str
    packed: tuple[str, ...]
    """Its contents: modules, packages, an archive."""
    left_out: tuple[str, ...]
    """The modules that are not in it, with the reason, a sentence each."""


@dataclass(frozen=True)
class Unpacked:
    """A topology's code where it runs."""

    folder: Path
    """Goes on the module search path."""
    entry: str
    python: str
    conf: dict[str, Any] = field(repr=False)
    """May hold secrets."""
    requirements: bytes | None
    """The content of `requirements.txt`."""

    @property
    def target(self) -> str:
        """What `storm_on_spark.launch.loader.load` loads it by.

        A module is found there once `folder` is on the module search path.
        """
        return str(self.folder / self.entry) if _is_file(self.entry) else self.entry


def pack(
    target: str,
    out_dir: Path,
    *,
    conf: Mapping[str, Any],
    plan: Mapping[str, Any] | None = None,
    requirements: Requirements | None = None,
) -> Packed:
    """Packs a topology. Nothing of it is imported.

    A file in a package brings its whole top-level package. A separate file brings what it imports from beside it, and
    what that imports. A package, a wheel and a zip are taken whole.

    Args:
        target: `FILE.py`, a Flux file, `package.module`, the folder of a package, or a wheel or zip; Python with an
            optional `:ATTRIBUTE`, the last with `:package.module` or `:package.module:ATTRIBUTE`.
        out_dir: where the files go; made, or empty.
        conf: the topology's configuration.
        plan: what it compiles to.
        requirements: what pip installs where it runs.

    Raises:
        CodeError: the target can't be found or is too large, or something can't be written as JSON.
    """
    found = collect(target)
    if not found.files:
        raise CodeError(f"{target} has no code")
    return _written(found, target, out_dir, conf=conf, plan=plan, requirements=requirements)


def pack_object(
    topology: Topology, pickled: bytes, out_dir: Path, *, conf: Mapping[str, Any], plan: Mapping[str, Any] | None = None
) -> Packed:
    """Packs a topology that is there as an object, with the modules of its components and of the program's script.

    Args:
        topology: names the modules.
        pickled: the same, pickled.
        out_dir: where the files go; made, or empty.
        conf: the topology's configuration.
        plan: what it compiles to.

    Raises:
        CodeError: a module is too large, or something can't be written as JSON.
    """
    found = collect_modules(topology)
    found.files |= {f"{_OBJECT}.py": _LOADING.encode(), f"{_OBJECT}.pickle": pickled}
    found.entry = f"{_OBJECT}.py"
    return _written(found, "the topology", out_dir, conf=conf, plan=plan)


def pack_files(
    files: Mapping[str, bytes], entry: str, out_dir: Path, *, conf: Mapping[str, Any], plan: Mapping[str, Any]
) -> Packed:
    """Packs files that are there as bytes, one of which makes the topology.

    Args:
        files: name in the archive -> content; names are those of an archive that was read.
        entry: of the topology.
        out_dir: where the files go; made, or empty.
        conf: the topology's configuration.
        plan: what it compiles to.

    Raises:
        CodeError: they are too many or too large.
    """
    total = sum(map(len, files.values()))
    if len(files) > archive.MAX_ENTRIES or total > archive.MAX_TOTAL_BYTES:
        raise CodeError(
            f"{len(files):,} files of {total >> 20:,} MiB; a topology may have {archive.MAX_ENTRIES:,} of "
            f"{archive.MAX_TOTAL_BYTES >> 20:,} MiB"
        )
    return _written(Collected(entry, dict(files), [entry]), "the topology", out_dir, conf=conf, plan=plan)


_OBJECT = "storm_submitted_topology"
_LOADING = f'''"""The topology that a program submitted."""

import pickle
from pathlib import Path

topology = pickle.loads(Path(__file__).with_name("{_OBJECT}.pickle").read_bytes())
'''


def _written(
    found: Collected,
    target: str,
    out_dir: Path,
    *,
    conf: Mapping[str, Any],
    plan: Mapping[str, Any] | None,
    requirements: Requirements | None = None,
) -> Packed:
    lines = None if requirements is None else requirements.read()
    documents: dict[str, bytes] = {
        TOPOLOGY: _topology_file(found, target),
        CONF: _json(dict(conf), CONF),
    }
    if plan is not None:
        documents[PLAN] = _json(dict(plan), PLAN)
    if lines is not None:
        documents[REQUIREMENTS] = lines
    make_private(out_dir)
    if any(out_dir.iterdir()):
        raise CodeError(f"{out_dir} is not empty; name a new or an empty folder to pack a topology into")
    archive.write(out_dir / CODE, found.files)
    size = (out_dir / CODE).stat().st_size
    if size > MAX_BYTES[CODE]:
        raise CodeError(f"{target}: packed it has {size:,} bytes; at most {MAX_BYTES[CODE]:,} are allowed")
    for name, content in documents.items():
        with os.fdopen(os.open(out_dir / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    files = tuple(sorted(out_dir / name for name in (CODE, *documents)))
    return Packed(files, found.entry, tuple(found.packed), tuple(found.left_out))


def unpack(source: Path, manifest: CodeManifest, into: Path) -> Unpacked:
    """Unpacks a topology's code, verified.

    Every byte that is used was checked after it was copied to a place where no other user can change it. Nothing is
    imported. `into` appears when all of it is there.

    Args:
        source: folder with the artifacts.
        manifest: what they must be.
        into: folder for the module search path; must not be there yet.

    Raises:
        CodeError: an artifact is missing, damaged, or not allowed; or `into` is there.
        ChecksumError: an artifact is something else than the manifest says.
    """
    where = f"code of {manifest.topology_id}"
    artifacts = {info.name: info for info in check_artifacts(manifest.artifacts, where)}
    topology = _decoded(TopologyFile, read_verified(source, artifacts[TOPOLOGY]), f"{where}: {TOPOLOGY}")
    conf = document(source, manifest, CONF)
    lines = read_verified(source, artifacts[REQUIREMENTS]) if REQUIREMENTS in artifacts else None
    make_private(into.parent)
    if os.path.lexists(into):
        raise CodeError(f"{into} already exists; name a new folder to unpack code into")
    scratch = into.parent / f".{into.name[:100]}.{uuid.uuid4().hex}"
    scratch.mkdir(mode=0o700)
    try:
        # A file without a name: what is verified can't be exchanged before it is read.
        with tempfile.TemporaryFile(dir=into.parent) as copy:
            copy_verified(source, artifacts[CODE], copy)
            archive.extract(copy, scratch, f"{where}: {CODE}")
        _check_entry(topology.entry, scratch, where)
        scratch.rename(into)
    except OSError as error:
        raise CodeError(f"{where} can't be unpacked into {into}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(scratch)
    return Unpacked(into, topology.entry, topology.python, conf, lines)


def document(source: Path, manifest: CodeManifest, name: str) -> dict[str, Any]:
    """Returns the content of `conf.json` or `plan.json`, verified; `{}` if the topology has no such artifact.

    Raises:
        CodeError: it is missing or no JSON object.
        ChecksumError: it is something else than the manifest says.
    """
    info = next((info for info in manifest.artifacts if info.name == name), None)
    if info is None:
        return {}
    where = f"code of {manifest.topology_id}: {name}"
    try:
        return msgspec.json.decode(read_verified(source, info), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise CodeError(f"{where}: no JSON object: {error}") from error


def _topology_file(found: Collected, target: str) -> bytes:
    try:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        packed = tuple(found.packed[:1000])
        return encode(TopologyFile(entry=found.entry, python=version, release=__version__, packed=packed))
    except RecordError as error:
        raise CodeError(f"{target}: {error}") from error


def _json(value: dict[str, Any], name: str) -> bytes:
    try:
        content = msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=1)
    except (TypeError, ValueError, RecursionError) as error:
        raise CodeError(f"{name}: a value can't be written as JSON: {error}") from error
    if len(content) > MAX_BYTES[name]:
        raise CodeError(f"{name}: {len(content):,} bytes; at most {MAX_BYTES[name]:,} are allowed")
    return content


def _decoded(type_: type[TopologyFile], data: bytes, where: str) -> TopologyFile:
    try:
        return decode(type_, data, where)
    except RecordError as error:
        raise CodeError(str(error)) from error


def _is_file(entry: str) -> bool:
    return Path(entry.partition(":")[0]).suffix in _ENTRIES


def _check_entry(entry: str, folder: Path, where: str) -> None:
    path, _, attribute = entry.partition(":")
    if attribute and not attribute.isidentifier():
        raise CodeError(f"{where}: entry {entry[:200]!r}: {attribute[:100]!r} is not the name of an attribute")
    inside = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.suffix in _ENTRIES}
    if not has_entry(inside, path):
        raise CodeError(f"{where}: entry {entry[:200]!r} is not in it")
