"""The files of an artifact.

main.py          the program that spark-submit starts
log4j2.properties Spark's log levels
job.zip          what it runs: job.json, python/ with packages, code/ with the topology's own modules
manifest.json    what was compiled, by which release, and the SHA-256 of every file
plan.json        the plan, as `storm-spark explain --json` shows it
plan.mmd         the same as a Mermaid diagram
plan.html        the same as a page with a picture
jars.json        Spark packages that the topology needs or wants
README.md        the exact line for spark-submit
SHA256SUMS       for `sha256sum -c`
topology/        the topology's code as a Nimbus takes it: `storm-spark submit FOLDER` uploads these files
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from storm_on_spark.artifact.main import ARCHIVE, UNPACKED
from storm_on_spark.cluster.errors import CodeError

FORMAT: Final = 1
MAIN: Final = "main.py"
LOGGING: Final = "log4j2.properties"
JOB: Final = "job.json"
MANIFEST: Final = "manifest.json"
PLAN: Final = "plan.json"
MERMAID: Final = "plan.mmd"
PICTURE: Final = "plan.html"
JARS: Final = "jars.json"
README: Final = "README.md"
SUMS: Final = "SHA256SUMS"
TOPOLOGY: Final = "topology"
_MAX_MANIFEST_BYTES: Final = 4 << 20
_BLOCK: Final = 1 << 20

__all__ = ["ARCHIVE", "UNPACKED", "files_of", "json_bytes", "read_manifest", "refuse_foreign", "sums"]


def json_bytes(value: Any) -> bytes:
    """Returns a JSON document; the same value gives the same bytes."""
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def files_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns size and SHA-256 of all files in a folder and below, by name."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
            name = path.relative_to(folder).as_posix()
            found[name] = {"sha256": digest.hexdigest(), "size": path.stat().st_size}
    return found


def sums(files: Mapping[str, Mapping[str, Any]]) -> bytes:
    r"""Returns a list that `sha256sum -c` takes.

    Example:
        >>> sums({"b": {"sha256": "02"}, "a": {"sha256": "01"}})
        b'01  a\n02  b\n'
    """
    return "".join(f"{files[name]['sha256']}  {name}\n" for name in sorted(files)).encode()


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Returns the manifest of the artifact in a folder; None if there is none that this release can read."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            found = json.loads(file.read(_MAX_MANIFEST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return found if _is_manifest(found) else None


def _is_manifest(found: Any) -> bool:
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("name"), str):
        return False
    files, keys = found.get("files"), found.get("left_out_keys")
    return (
        isinstance(files, dict)
        and all(isinstance(file, dict) and set(file) == {"sha256", "size"} for file in files.values())
        and all(isinstance(file["sha256"], str) and isinstance(file["size"], int) for file in files.values())
        and isinstance(keys, list)
        and all(isinstance(key, str) for key in keys)
    )


def refuse_foreign(folder: Path) -> None:
    """Checks that a folder may be replaced: it does not exist, is empty, or is an unchanged artifact.

    Raises:
        CodeError: it holds something else, its files were changed, or it is not a folder.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise CodeError(f"{folder} is not a folder; name a new folder for the artifact")
    if not folder.exists() or not any(folder.iterdir()):
        return
    manifest = read_manifest(folder)
    if manifest is None:
        some = sorted(path.name for path in folder.iterdir())[0]
        raise CodeError(f"{folder} holds {some}, and is not an artifact; name a new or an empty folder")
    ours = {MANIFEST, SUMS, *manifest["files"]}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if (path.is_symlink() or not path.is_dir()) and name not in ours:
            raise CodeError(f"{folder} holds {name}, which is not of its artifact; move it, or name another folder")
    for name, found in files_of(folder).items():
        if name not in (MANIFEST, SUMS) and found != manifest["files"][name]:
            raise CodeError(
                f"{folder} holds {name}, which was changed after it was written; move it, or name another folder"
            )
