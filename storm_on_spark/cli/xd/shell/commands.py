"""The commands of a shell: those of the command line without options that a shell already knows, and a few more."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from storm_on_spark import __version__
from storm_on_spark.api.text.lines import lines_of
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import FAILED, USAGE, sentence
from storm_on_spark.cli.shared.groups import Group, leaves, summary
from storm_on_spark.cli.shared.usage import readable_usage
from storm_on_spark.cli.xd import counters, job, modules, runtime
from storm_on_spark.cli.xd.asking import HIDDEN, OWN, asked
from storm_on_spark.cli.xd.lifecycle import commands
from storm_on_spark.cli.xd.shell.lines import split_line

if TYPE_CHECKING:
    from storm_on_spark.xd.client import AdminClient

PROMPT: Final = "xd:>"
_COMMENTS: Final = ("#", "//", ";")
_MOST_SCRIPT: Final = 10_000_000
"""The most bytes of a script."""
_MOST_SCRIPTS: Final = 10


def without_truth(words: list[str], flags: Collection[str]) -> list[str]:
    """Returns words in which flags have no value; Spring XD's shell accepts `--deploy true` and `--deploy false`.

    Example:
        >>> without_truth(["create", "a", "--deploy", "true", "--json", "false"], {"--deploy", "--json"})
        ['create', 'a', '--deploy']
    """
    kept: list[str] = []
    for word in words:
        if word.lower() in ("true", "false") and kept and kept[-1] in flags:
            if word.lower() == "false":
                kept.pop()
        else:
            kept.append(word)
    return kept


def _flags(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.is_flag:
            yield from parameter.opts
    if isinstance(command, click.Group):
        for each in command.commands.values():
            yield from _flags(each)


class Shell:
    """Executes lines one after the other.

    Args:
        client: a client of the admin; the shell closes it, or its replacement.
        conf: configuration of the clients that it makes.
    """

    def __init__(self, client: AdminClient, conf: Mapping[str, object]) -> None:
        self.client = client
        self.conf = conf
        self.ended = False
        """Whether `exit` was typed."""
        self.root = _root()
        self._flags = frozenset(_flags(self.root))
        self._depth = 0

    def close(self) -> None:
        """Closes the connections."""
        self.client.close()

    def banner(self) -> str:
        """Returns the text above the first prompt."""
        return (
            f"Storm on Spark {__version__} | Admin Server Target: {self.client.url}\n"
            'Welcome to the shell of streams. For assistance hit TAB or type "help".'
        )

    def reach(self) -> str:
        """Returns a sentence that says whether the admin answers."""
        from storm_on_spark.api.errors import StormError

        try:
            self.client.ask("version")
        except StormError as error:
            return f"Unable to contact XD Admin Server at '{self.client.url}': {sentence(error)}"
        return f"Successfully targeted {self.client.url}"

    def execute(self, line: str) -> int:
        """Executes a line, prints its answer, or an error on standard error, and returns its exit code."""
        if not line.strip() or line.lstrip().startswith(_COMMENTS):
            return 0
        try:
            words = without_truth(split_line(line), self._flags)
        except ValueError as error:
            echo(f"Error: the line can't be read: {error}", err=True)
            return USAGE
        if words[0] == "help":
            words = [*words[1:], "--help"]
        try:
            with readable_usage():
                found = self.root.main(words, prog_name="", standalone_mode=False, obj=self)
        except click.UsageError as error:
            if error.ctx is None or error.ctx.parent is not None:
                error.show()
            else:  # Click would show the usage line of a program without a name.
                echo(f"Error: {error.format_message()} `help` lists the commands.", err=True)
            return error.exit_code
        except click.ClickException as error:
            error.show()
            return error.exit_code
        except click.Abort:
            return FAILED
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else FAILED
        # Click returns the code of `--help` here.
        return found if isinstance(found, int) else 0

    def script(self, path: Path) -> int:
        """Executes the lines of a file until one fails; returns its exit code."""
        try:
            with path.open("rb") as file:
                content = file.read(_MOST_SCRIPT + 1)
            if len(content) > _MOST_SCRIPT:
                raise ValueError(f"it has more than {_MOST_SCRIPT:,} bytes")
            lines = lines_of(content.decode())
        except OSError as error:
            echo(f"Error: {path} can't be read: {error.strerror}", err=True)
            return USAGE
        except ValueError as error:
            echo(f"Error: {path} is not a script: {error}", err=True)
            return USAGE
        if self._depth == _MOST_SCRIPTS:
            echo(f"Error: {path}: Expected at most {_MOST_SCRIPTS} scripts inside each other", err=True)
            return USAGE
        self._depth += 1
        try:
            return self.lines(lines, str(path))
        finally:
            self._depth -= 1

    def lines(self, lines: Iterable[str], where: str) -> int:
        """Executes lines until one fails, which standard error names, or `exit`; returns the last exit code."""
        for number, line in enumerate(lines, 1):
            code = self.execute(line)
            if code:
                echo(f"{where}, line {number}: {line.strip():.200}", err=True)
                return code
            if self.ended:
                break
        return 0


class _Shell(Group):
    """All commands of a shell, grouped by subject. A shell is not a program, so its help shows no usage line."""

    def format_usage(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes nothing."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands."""
        self.format_commands(context, formatter)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands with the words before them, in one section per group."""
        groups = {name: each for name, each in sorted(self.commands.items()) if isinstance(each, click.Group)}
        sections = {summary(each).rstrip("."): list(leaves(each, name)) for name, each in groups.items()}
        sections["This shell"] = [(name, each) for name, each in leaves(self) if name in self.commands]
        width = max(len(words) for rows in sections.values() for words, _ in rows)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl([(words.ljust(width), summary(each)) for words, each in rows])


def _root() -> Group:
    stream = Group("stream", commands("stream"), short_help="Streams of modules.", help="Streams of modules.")
    jobs = Group("job", job.command.commands, short_help="Jobs.", help="Jobs.")
    counted = [counters.group(kind) for kind in counters.KINDS]
    groups = (stream, jobs, modules.command, runtime.command, *counted, _admin())
    own = (_script, _exit, _quit, _version)
    made = {str(each.name): _bare(each) for each in (*groups, *own)}
    return _Shell(
        "shell",
        made,
        help="`help stream create` describes one command. A word with spaces needs quotes.",
        context_settings={"help_option_names": ["--help"], "max_content_width": 100},
        add_help_option=True,
    )


def _bare(command: click.Command) -> click.Command:
    """Returns a command without the parameters that a shell doesn't need."""
    found = copy.copy(command)
    found.params = [_shown(each) for each in command.params if each.name not in OWN]
    if isinstance(found, click.Group) and isinstance(command, click.Group):
        found.commands = {name: _bare(each) for name, each in command.commands.items()}
    return found


def _shown(parameter: click.Parameter) -> click.Parameter:
    if not isinstance(parameter, click.Option) or parameter.name not in HIDDEN:
        return parameter
    found = copy.copy(parameter)
    found.hidden = True
    return found


def _admin() -> click.Group:
    config = Group("config", help="Choose the admin, or show it.")

    @config.command("server")
    @click.argument("uri", required=False)
    @click.option("--uri", "named", metavar="URI", help="The same.")
    def server(uri: str | None, named: str | None) -> None:
        """Ask the admin at URI from now on, such as http://localhost:9393."""
        from storm_on_spark.xd.client import DEFAULT_URL, AdminClient

        with asked():
            shell: Shell = click.get_current_context().obj
            # The previous admin stays if this is not a URL.
            client = AdminClient(uri or named or DEFAULT_URL, shell.conf)
            shell.client.close()
            shell.client = client
            echo(shell.reach())

    @config.command("info")
    def info() -> None:
        """Show the admin that this shell asks."""
        echo(click.get_current_context().obj.reach())

    return Group("admin", {"config": config}, help="The admin that this shell asks.")


@click.command("script")
@click.option(
    "--file", "file", required=True, type=click.Path(path_type=Path), help="The file; its lines are commands."
)
@click.pass_context
def _script(context: click.Context, file: Path) -> None:
    """Execute the lines of a file, until one fails."""
    context.exit(context.obj.script(file))


@click.command("exit")
@click.pass_obj
def _exit(shell: Shell) -> None:
    """End this shell."""
    shell.ended = True


@click.command("quit")
@click.pass_obj
def _quit(shell: Shell) -> None:
    """End this shell."""
    shell.ended = True


@click.command("version")
def _version() -> None:
    """Show the version of this shell."""
    echo(__version__)
