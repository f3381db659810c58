"""The commands that streams and jobs share: create, deploy, undeploy, destroy, list, and `all` of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from storm_on_spark.api.errors import StormError
from storm_on_spark.api.text.lines import lines_of
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.groups import Group
from storm_on_spark.cli.shared.names import name_argument, name_of
from storm_on_spark.cli.xd.asking import Asked, admin_options, asked
from storm_on_spark.cli.xd.tables import table

if TYPE_CHECKING:
    from storm_on_spark.xd.admin.rest.schemas import DeploymentView

Kind = Literal["stream", "job"]

_UNDER_WAY: Final = ("deploying", "unknown")
_POLL_SECS: Final = 0.2
_NOT_DEPLOYED: Final = {
    "incomplete": "is incomplete: not every module has a suitable container; it continues when there is one",
    "failed": "has failed; the log of its containers says why",
    "undeployed": "was undeployed meanwhile",
}


_DONE: Final[dict[Kind, dict[str, str]]] = {
    "stream": {
        "create": "Created new stream '{}'",
        "create and deploy": "Created and deployed new stream '{}'",
        "deploy": "Deployed stream '{}'",
        "undeploy": "Un-deployed stream '{}'",
        "destroy": "Destroyed stream '{}'",
    },
    "job": {
        "create": "Successfully created job '{}'",
        "create and deploy": "Successfully created and deployed job '{}'",
        "deploy": "Deployed job '{}'",
        "undeploy": "Un-deployed Job '{}'",
        "destroy": "Destroyed job '{}'",
    },
}
"""Spring XD's messages."""
_TEXT: Final[dict[Kind, str]] = {
    "stream": 'Modules and | between them: "time | log".',
    "job": 'Steps in a sequence and in splits: "load || <report & mail>".',
}


class NotDeployedError(StormError, RuntimeError):
    """A stream or job is not deployed as requested."""


def commands(kind: Kind) -> dict[str, click.Command]:
    """Returns the commands by name."""
    many = Group("all", short_help=f"Undeploy or destroy all {kind}s.", help=f"Undeploy or destroy all {kind}s.")
    many.add_command(_all(kind, "undeploy"))
    many.add_command(_all(kind, "destroy"))
    made = (_create(kind), _deploy(kind), _undo(kind, "undeploy"), _undo(kind, "destroy"), _list(kind))
    return {**{str(each.name): each for each in made}, "all": many}


def _create(kind: Kind) -> click.Command:
    @click.command("create", short_help=f"Create a {kind}.", help=f"Create the {kind} NAME on an admin.")
    @name_argument
    @click.option("--definition", required=True, metavar="TEXT", help=_TEXT[kind])
    @click.option("--deploy", is_flag=True, help="Deploy it, too.")
    @admin_options
    def create(name: str | None, definition: str, deploy: bool, **given: Any) -> None:
        from storm_on_spark.xd.admin.rest.schemas import CreateDefinition

        with asked(**given) as request:
            chosen = name_of(name)
            made = request.client.ask(f"create_{kind}", CreateDefinition(name=chosen, definition=definition))
            if not deploy:
                request.answer(made, _DONE[kind]["create"].format(chosen))
                return
            deployment = _deployed(request, kind, chosen, {}, fused=False, patience=_PATIENCE_SECS)
            request.answer(deployment, _DONE[kind]["create and deploy"].format(chosen))

    return create


_PATIENCE_SECS: Final = 60.0
_MOST_BYTES: Final = 1_000_000


def _deploy(kind: Kind) -> click.Command:
    @click.command("deploy", short_help=f"Deploy a {kind}.", help=f"Deploy the {kind} NAME, and wait until it runs.")
    @name_argument
    @click.option("--properties", metavar="TEXT", help="Such as module.log.count=2,module.http.criteria=EXPRESSION.")
    @click.option(
        "--propertiesFile",
        "file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="A file with one such property per line; # begins a comment.",
    )
    @click.option("--fused", is_flag=True, help="Run all modules as one topology, in one container.")
    @click.option(
        "-t",
        "--timeout",
        type=options.SECONDS,
        default=_PATIENCE_SECS,
        show_default=True,
        help="Seconds to wait until it runs.",
    )
    @admin_options
    def deploy(
        name: str | None, properties: str | None, file: Path | None, fused: bool, timeout: float, **given: Any
    ) -> None:
        with asked(**given) as request:
            if properties is not None and file is not None:
                raise click.UsageError("Expected one of --properties and --propertiesFile")
            chosen, manifest = name_of(name), read_properties(properties or "")
            if file is not None:
                manifest = properties_in(file)
            found = _deployed(request, kind, chosen, manifest, fused=fused, patience=timeout)
            request.answer(found, _DONE[kind]["deploy"].format(chosen))

    return deploy


def _deployed(
    request: Asked, kind: Kind, name: str, properties: dict[str, str], *, fused: bool, patience: float
) -> DeploymentView:
    """Waits for a deployment and returns it.

    Raises:
        NotDeployedError: it has another state in the end; the request stays.
    """
    from storm_on_spark.xd.admin.rest.schemas import Deploy

    body = Deploy(properties=properties, fused=fused)
    found: DeploymentView = request.client.ask(f"deploy_{kind}", body, name=name)
    deadline = time.monotonic() + patience
    while found.state in _UNDER_WAY:
        if time.monotonic() > deadline:
            raise NotDeployedError(f"{kind.capitalize()} '{name}' is still being deployed after {patience:g} s")
        time.sleep(_POLL_SECS)
        found = request.client.ask(f"get_{kind}_deployment", name=name)
    if found.state != "deployed":
        raise NotDeployedError(f"{kind.capitalize()} '{name}' {_NOT_DEPLOYED[found.state]}")
    return found


def _undo(kind: Kind, operation: Literal["undeploy", "destroy"]) -> click.Command:
    effect = {
        "undeploy": "Undeploy the {} NAME; it stays defined.",
        "destroy": "Undeploy the {} NAME, and remove it.",
    }[operation]

    @click.command(operation, short_help=f"{operation.capitalize()} a {kind}.", help=effect.format(kind))
    @name_argument
    @admin_options
    def undo(name: str | None, **given: Any) -> None:
        with asked(**given) as request:
            chosen = name_of(name)
            request.client.ask(f"{operation}_{kind}", name=chosen)
            request.answer({"name": chosen, "operation": operation}, _DONE[kind][operation].format(chosen))

    return undo


def _all(kind: Kind, operation: Literal["undeploy", "destroy"]) -> click.Command:
    done = {"undeploy": f"Un-deployed all the {kind}s", "destroy": f"Destroyed all {kind}s"}[operation]

    @click.command(operation, help=f"{operation.capitalize()} all {kind}s.")
    @click.option("--force", is_flag=True, help="Do not ask first.")
    @admin_options
    def everything(force: bool, **given: Any) -> None:
        with asked(**given) as request:
            if not force:
                if not sys.stdin.isatty():
                    raise click.UsageError(f"Expected --force: there is no terminal to ask whether to {operation} all")
                if not click.confirm(f"Really {operation} all {kind}s?", err=True):
                    return
            request.client.ask(f"{operation}_{kind}s")
            request.answer({"name": None, "operation": operation}, done)

    return everything


def _list(kind: Kind) -> click.Command:
    @click.command("list", short_help=f"List the {kind}s.", help=f"List the {kind}s of an admin, and their states.")
    @admin_options
    def listed(**given: Any) -> None:
        with asked(**given) as request:
            found = list(request.client.every(f"list_{kind}s"))
            title = kind.capitalize()
            rows = [[each.name, each.definition, each.status] for each in found]
            request.answer({f"{kind}s": found}, table([f"{title} Name", f"{title} Definition", "Status"], rows))

    return listed


def read_properties(text: str) -> dict[str, str]:
    """Returns a manifest; a comma ends a property only where the next one begins with `module.`.

    Raises:
        click.UsageError: a property has no `=`, or is there twice.

    Example:
        >>> read_properties("module.log.count=2,module.http.criteria=groups.contains('a,b')")
        {'module.log.count': '2', 'module.http.criteria': "groups.contains('a,b')"}
    """
    pieces: list[str] = []
    for piece in text.split(",") if text.strip() else ():
        if pieces and not piece.lstrip().startswith("module."):
            pieces[-1] += f",{piece}"
        else:
            pieces.append(piece)
    return _properties(pieces)


def properties_in(file: Path) -> dict[str, str]:
    """Returns the manifest in a file.

    Raises:
        click.UsageError: it can't be read, or a property has no `=`, or is there twice.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
        lines = lines_of(content.decode())
    except OSError as error:
        raise click.UsageError(f"{file} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise click.UsageError(f"{file} has no properties: {error}") from error
    return _properties(line for line in lines if line.strip() and not line.lstrip().startswith(("#", "!")))


def _properties(pieces: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for piece in pieces:
        key, equals, value = (part.strip() for part in piece.partition("="))
        if not equals or not key:
            raise click.UsageError(f"Expected properties such as module.log.count=2, got {piece!r:.100}")
        if key in found:
            raise click.UsageError(f"Expected each property once, got {key!r:.100} again")
        found[key] = value
    return found
