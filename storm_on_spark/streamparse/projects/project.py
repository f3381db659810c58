"""A project of streamparse: a folder with `config.json`, `src/`, `topologies/` and `virtualenvs/`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from storm_on_spark.api.errors import ConfigError, InvalidTopologyError

log = logging.getLogger(__name__)

CONFIG: Final = "config.json"
_MAX_BYTES: Final = 1 << 20
_USE: Final = "use_virtualenv"
_INSTALL: Final = "install_virtualenv"


@dataclass(frozen=True)
class Project:
    """A project, as its `config.json` describes it."""

    folder: Path
    config: dict[str, Any]

    @property
    def topologies(self) -> list[Path]:
        """The files of its topologies, by name."""
        specs = self.folder / str(self.config.get("topology_specs") or "topologies")
        return sorted(path for path in specs.glob("*.py") if not path.name.startswith("_"))

    @property
    def environments(self) -> dict[str, Any]:
        """Its environments by name."""
        found = self.config.get("envs") or {}
        if not isinstance(found, dict) or not all(isinstance(value, dict) for value in found.values()):
            raise ConfigError(f'{self.folder / CONFIG}: "envs" must be an object of objects')
        return found

    @property
    def virtualenvs(self) -> Path:
        """The folder with the requirements of its topologies, `NAME.txt` each."""
        specs = self.config.get("virtualenv_specs") or "virtualenvs"
        if not isinstance(specs, str):
            raise ConfigError(f'{self.folder / CONFIG}: "virtualenv_specs" must be a text, not {specs!r:.80}')
        return self.folder / specs

    def requirements(self, name: str, conf: Mapping[str, Any]) -> Path | None:
        """Returns the file of what a topology requires, if there is one that is to be installed.

        Args:
            name: that of the topology's file. `virtualenv_name` names a folder on Storm's workers, and no file.
            conf: the topology's, with the options of an environment and of the command line.

        Raises:
            ConfigError: an option is neither true nor false.
        """
        for key in (_USE, _INSTALL):
            value = conf.get(key, True)
            if not isinstance(value, bool):
                raise ConfigError(f"{key} must be true or false, not {value!r:.80}")
            if not value:
                return None
        path = self.virtualenvs / f"{name}.txt"
        return path if path.is_file() else None

    def topology(self, name: str | None) -> Path:
        """Returns the file of a topology; without a name, of the only one.

        Raises:
            InvalidTopologyError: there is none of that name, or there are several.
        """
        known = {path.stem: path for path in self.topologies}
        there = f"there are: {', '.join(known)}" if known else "there are none"
        if name is None and len(known) != 1:
            raise InvalidTopologyError(f"{self.folder} is a streamparse project; name a topology by -n; {there}")
        found = next(iter(known.values())) if name is None else known.get(name)
        if found is None:
            raise InvalidTopologyError(f"{self.folder} has no topology {name!r}; {there}")
        return found

    def environment_conf(self, environment: str | None) -> dict[str, Any]:
        """Returns the configuration that an environment has: its `options`, the level of its `log`, `use_virtualenv`.

        Args:
            environment: its name; None takes the only one, and none of several, with a warning.

        Raises:
            ConfigError: there is none of that name, or `config.json` is wrong.
        """
        known = self.environments
        if environment is None and len(known) != 1:
            if known:
                there = ", ".join(known)
                log.warning(
                    "%s has the environments %s; none of them counts: name one by -e", self.folder / CONFIG, there
                )
            return {}
        found = next(iter(known.values())) if environment is None else known.get(environment)
        if found is None:
            raise ConfigError(
                f"{self.folder / CONFIG} has no environment {environment!r}; there are: {', '.join(known)}"
            )
        conf = found.get("options") or {}
        logs = found.get("log") or {}
        if not isinstance(conf, dict) or not isinstance(logs, dict):
            raise ConfigError(f'{self.folder / CONFIG}: "options" and "log" of an environment must be objects')
        conf = {**conf, **{key: found[key] for key in (_USE, _INSTALL) if key in found}}
        level = logs.get("level")
        return {**conf, "pystorm.log.level": level.lower()} if isinstance(level, str) else conf


def find_project(folder: Path) -> Project | None:
    """Returns the project in a folder, or None.

    Raises:
        ConfigError: its `config.json` can't be read.
    """
    path = folder / CONFIG
    if not path.is_file():
        return None
    try:
        content = path.read_bytes()
        if len(content) > _MAX_BYTES:
            raise ConfigError(f"{path} has {len(content):,} bytes; at most {_MAX_BYTES:,} are read")
        config = json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} can't be read: {error}") from error
    if not isinstance(config, dict):
        raise ConfigError(f"{path} must be a JSON object, not {type(config).__name__}")
    # Any program may have a `config.json`, and in it `envs`; streamparse has defaults for the two keys of its own.
    is_project = {"topology_specs", "virtualenv_specs"} & config.keys()
    return Project(folder, config) if is_project or ("envs" in config and (folder / "topologies").is_dir()) else None


def project_of(file: Path) -> Project | None:
    """Returns the project that a topology's file belongs to, or None.

    Any program may have a `config.json` there: a wrong one counts only beside the folder `topologies`.

    Raises:
        ConfigError: the project's `config.json` can't be read.
    """
    folder = file.parent.parent
    try:
        return find_project(folder)
    except ConfigError:
        if (folder / "topologies").is_dir():
            raise
        return None


def source_folders(file: Path) -> list[Path]:
    """Returns the folders from which a topology's file imports, besides its own: `src` of its project."""
    project = project_of(file)
    source = file.parent.parent / "src"
    return [source] if project is not None and source.is_dir() else []
