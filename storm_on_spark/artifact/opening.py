"""Takes a topology's code out of an artifact, for a Nimbus."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.artifact import layout
from storm_on_spark.cluster.code.checksums import CONF, copy_verified
from storm_on_spark.cluster.errors import CodeError
from storm_on_spark.cluster.records import ArtifactInfo

_LATER: Final = (Config.TOPOLOGY_CHECKPOINT_DIR,)


@dataclass(frozen=True)
class Opened:
    """The part of an artifact that a Nimbus takes."""

    name: str
    conf: Mapping[str, Any] = field(repr=False)
    """It may hold secrets from the command line."""


def is_artifact(target: str) -> bool:
    """Returns whether a command's argument names an artifact's folder."""
    return Path(target, layout.MANIFEST).is_file() and Path(target, layout.TOPOLOGY).is_dir()


def open_artifact(folder: Path, into: Path, given: Mapping[str, Any]) -> Opened:
    """Verifies and copies the files for a Nimbus, and adds configuration.

    Args:
        folder: of the artifact.
        into: the target folder, which is created.
        given: overrides the configuration of the artifact. It can't have keys that may change the plan, because the
            plan is part of the artifact.

    Raises:
        CodeError: the folder is not an artifact of this release, or a file is missing.
        ChecksumError: a file was changed after compiling.
        ConfigError: a key of `given` may change the plan.
    """
    manifest = layout.read_manifest(folder)
    if manifest is None:
        raise CodeError(f"{folder} is not an artifact that this release of Storm on Spark can read; compile it again")
    open_keys = (*_LATER, *manifest["left_out_keys"])
    for key in given:
        if key not in open_keys and not key.startswith("spark."):
            raise ConfigError(
                f"{key} can't be given with an artifact, whose plan is made; compile it again with that. What can be "
                f"given: spark.*, {', '.join(open_keys)}",
                key=key,
            )
    into.mkdir(mode=0o700)
    prefix = f"{layout.TOPOLOGY}/"
    for name, found in manifest["files"].items():
        if name.startswith(prefix):
            info = ArtifactInfo(name=name.removeprefix(prefix), size=found["size"], sha256=found["sha256"])
            with _new(into / Path(info.name).name) as file:
                copy_verified(folder / layout.TOPOLOGY, info, file)
    conf = json.loads((into / CONF).read_bytes()) | dict(given)
    if given:
        (into / CONF).unlink()
        with _new(into / CONF) as file:
            file.write(layout.json_bytes(conf))
    return Opened(str(manifest["name"]), conf)


def _new(path: Path) -> Any:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
