"""Options that several commands have, and the types of their values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from storm_on_spark.api.config import KEYS, Config
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.launch.conf_text import merged
from storm_on_spark.launch.loader import Target
from storm_on_spark.launch.settings import NameSettings
from storm_on_spark.streamparse.front_end import ENVIRONMENT
from storm_on_spark.streamparse.projects.project import find_project, project_of

if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType  # generic since click 8.5

_Function = TypeVar("_Function", bound=Callable[..., Any])

CONF_FILE: Final = "conf.yaml"
"""A file that is read without being named if it is beside the topology's file."""
_GIVEN: Final = "storm_on_spark.given"
_NAME_LENGTH: Final = 150
_MASTER: Final = re.compile(
    r"local|local\[([1-9][0-9]*|\*)(\s*,\s*[1-9][0-9]*)?\]"
    r"|local-cluster\[\s*[1-9][0-9]*\s*,\s*[1-9][0-9]*\s*,\s*[1-9][0-9]*\s*\]"
    r"|yarn|[a-z][a-z0-9+.-]*://.+"
)
"""Masters that Spark accepts; other schemes may belong to a cluster manager on its class path."""


class _Number(_Type):
    """A number in a range; the error for another value names the range."""

    name = "number"

    def __init__(self, what: str, minimum: float, maximum: float | None = None, *, whole: bool = False) -> None:
        self._what, self._minimum, self._maximum, self._whole = what, minimum, maximum, whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = int(value) if self._whole else float(value)
        except (ValueError, TypeError):
            self._refuse(value, param, ctx)
        low = number < self._minimum
        if low or not math.isfinite(number) or (self._maximum is not None and number > self._maximum):
            self._refuse(value, param, ctx)
        return number

    def _refuse(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> None:
        top = "of at least {0:g}" if self._maximum is None else "from {0:g} to {1:d}"
        allowed = top.format(self._minimum, int(self._maximum or 0))
        self.fail(f"{_shown(value)} is not {self._what} {allowed}", param, ctx)


class _Name(_Type):
    """The name of a topology."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.strip() or len(text) > _NAME_LENGTH or "/" in text or not text.isprintable():
            self.fail(
                f"{_shown(text)} is not a name of a topology: 1 to {_NAME_LENGTH} printable characters, no '/'",
                param,
                ctx,
            )
        return text


class _Master(_Type):
    """A Spark master. It is checked here, because Spark's own error comes after its start and is hidden in a log."""

    name = "master"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not _MASTER.fullmatch(text):
            self.fail(
                f"{_shown(text)} is not a Spark master: local, local[N], local[*], local[N,ATTEMPTS], "
                "local-cluster[WORKERS,CORES,MEGABYTES], spark://HOST:PORT, yarn or k8s://URL",
                param,
                ctx,
            )
        return text


def whole(what: str, minimum: int, maximum: int | None = None) -> _Type:
    """Returns the type of whole numbers in a range."""
    return _Number(what, minimum, maximum, whole=True)


SECONDS: Final[_Type] = _Number("a number of seconds", 0)
POSITIVE_SECONDS: Final[_Type] = _Number("a number of seconds", 0.001)
PORT: Final = whole("a port", 0, 65535)


def _files(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(begun, type="file")]


def target(function: _Function) -> _Function:
    """Adds the argument that names a topology, optional in streamparse projects, and options of `sparse`."""
    argument = click.argument("target", metavar="[FILE_OR_MODULE[:ATTR]]", required=False, shell_complete=_files)
    environment = click.option(
        "-e",
        "--environment",
        metavar="NAME",
        expose_value=False,
        callback=_note(ENVIRONMENT),
        help="The environment of a streamparse project's config.json.",
    )
    ackers = click.option(
        "-a",
        "--ackers",
        metavar="N",
        type=whole("a number of ackers", 0),
        expose_value=False,
        callback=_note(Config.TOPOLOGY_ACKER_EXECUTORS),
        help="The number of ackers.",
    )
    workers = click.option(
        "-w",
        "--workers",
        metavar="N",
        type=whole("a number of workers", 1),
        expose_value=False,
        callback=_note(Config.TOPOLOGY_WORKERS),
        help="The number of processes for spouts.",
    )
    return argument(environment(ackers(workers(function))))


def _note(key: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Returns a callback that keeps an option's value for `conf_of`."""

    def note(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value is not None:
            context.meta.setdefault(_GIVEN, {})[key] = value
        return value

    return note


def _given() -> dict[str, Any]:
    context = click.get_current_context(silent=True)
    return {} if context is None else dict(context.meta.get(_GIVEN, {}))


def target_of(given: str | None, name: str | None) -> str:
    """Returns the target: the given one, or the topology of the streamparse project in this folder.

    Args:
        given: the argument.
        name: the topology's name, which in a project is that of its file.

    Raises:
        click.UsageError: nothing was given, and this folder is not a project.
        StormError: the project has no such topology.
    """
    if given is not None:
        return given
    project = find_project(Path.cwd())
    if project is None:
        raise click.UsageError(
            "Missing argument 'FILE_OR_MODULE[:ATTR]'. You may omit it only in the folder of a streamparse project, "
            "with its config.json."
        )
    return str(project.topology(name).relative_to(Path.cwd()))


debug = click.option("--debug", is_flag=True, help="Show tracebacks.")

data_folder = click.option(
    "--dir",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for its data. By default the data are temporary.",
)


def server_port(default: int) -> Callable[[_Function], _Function]:
    """Returns the option for the port of a server on this host."""
    return click.option(
        "--port",
        type=PORT,
        default=default,
        show_default=True,
        help="Port to listen on, on this host only; 0 for any free port.",
    )


_NAME_HELP: Final = "The topology's name; by default topology.name, or that of the module."

name = click.option("--name", type=_Name(), help=_NAME_HELP)

name_or_n = click.option(
    "-n", "--name", type=_Name(), help=f"{_NAME_HELP} In a streamparse project it names a topology."
)


def master_for(what: str) -> Callable[[_Function], _Function]:
    """Returns the option `--master` with its help text."""
    return click.option("--master", metavar="URL", type=_Master(), help=what)


master = master_for("Spark master: local[N], local-cluster[...], spark://... By default all cores of this machine.")


def _keys(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    return [CompletionItem(f"{key}=") for key in KEYS if key.startswith(begun)]


def configuration(function: _Function) -> _Function:
    """Adds `-c`, also as `-o`, and `--conf`, which `conf_of` merges."""
    return _configuration("-c", "-o", "--option")(function)


def configuration_without_o(function: _Function) -> _Function:
    """Adds `-c` and `--conf`, for a command whose `-o` is something else."""
    return _configuration("-c", "--option")(function)


def _configuration(*names: str) -> Callable[[_Function], _Function]:
    pairs = click.option(
        *names,
        "pairs",
        metavar="KEY=VALUE",
        multiple=True,
        shell_complete=_keys,
        help="One configuration value, typed as in YAML; overrides files and the module's own conf. "
        "Keys that start with spark. go to Spark. May be repeated.",
    )
    files = click.option(
        "--conf",
        "files",
        metavar="FILE.yaml",
        multiple=True,
        type=click.Path(path_type=Path),
        help="A YAML file of configuration. May be repeated; later files win.",
    )
    return lambda function: pairs(files(function))


def conf_of(target: Target, files: tuple[Path, ...], pairs: tuple[str, ...], *, quiet: bool = False) -> dict[str, Any]:
    """Returns the module's own `conf`, overridden by the command line.

    Without `--conf`, a `conf.yaml` beside the topology's file is read, and standard error says so.
    """
    given = _given()
    project = None if target.file is None else project_of(target.file)
    base = {} if project is None else project.environment_conf(given.get(ENVIRONMENT))
    return {**base, **target.conf, **merged(files or file_beside(target, quiet=quiet), pairs), **given}


def file_beside(target: Target, *, quiet: bool = False) -> tuple[Path, ...]:
    """Returns the `conf.yaml` beside the topology's file, if there is one; standard error names it."""
    if target.file is None:
        return ()
    found = target.file.with_name(CONF_FILE)
    if not found.is_file() or found == target.file:
        return ()
    if found.is_relative_to(Path.cwd()):
        found = found.relative_to(Path.cwd())
    if not quiet:
        echo(f"Configuration: {found}; --conf FILE names another", err=True)
    return (found,)


def name_of(given: str | None, conf: dict[str, Any], target: Target) -> str:
    """Returns the topology's name: from `--name`, or from the configuration, or from the module."""
    return given or NameSettings.of(conf).name or target.name


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
