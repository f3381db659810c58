"""`storm-spark logs`: the output of a topology's driver."""

from __future__ import annotations

import codecs
import json as jsonlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from storm_on_spark.api.errors import NotAliveError
from storm_on_spark.api.text.lines import lines_of
from storm_on_spark.cli.client.asking import asked, cluster_options, name
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.runtime.processes.ending.at_once import interrupts_raised

if TYPE_CHECKING:
    from storm_on_spark.cluster.client.nimbus_client import NimbusClient

_LOOK_SECS: Final = 0.5
_WHERE_SECS: Final = 2.0
"""Time between two look-ups of the driver's place, which may change."""
_TAIL_BYTES: Final = 1 << 20


@click.command("logs", short_help="Show the output of a topology's driver.")
@name
@click.option("-f", "--follow", is_flag=True, help="Show new lines until Ctrl-C or until the topology is gone.")
@click.option(
    "-n",
    "--lines",
    metavar="N",
    type=options.whole("a number of lines", 0, 100_000),
    default=100,
    show_default=True,
    help="Last lines.",
)
@cluster_options
def command(name: str, follow: bool, lines: int, **given: Any) -> None:
    """Show the output of the driver of the topology NAME: its logs, and everything that your own code prints.

    Logs outlive their topology: after a kill, NAME (or its id) shows the output of its last driver, until the hosts
    remove it (supervisor.logs.cleanup.age.mins, by default after a week).

    With --follow and --json, every line is a separate document.
    """
    with interrupts_raised(), asked(**given) as request, request.client() as client:
        try:
            blocks = Tail(client, name, lines).blocks(follow)
            if not request.json:
                for block in blocks:
                    echo(block, nl=False)
            elif follow:
                for line in whole_lines(blocks):
                    echo(jsonlib.dumps({"line": line}))
            else:
                echo(jsonlib.dumps({"topology": name, "lines": list(whole_lines(blocks))}))
        except KeyboardInterrupt:
            echo(err=True)


@dataclass
class Tail:
    """The end of a topology's log, and new lines.

    Args:
        client: a client of the cluster.
        name: the topology's name.
        lines: the number of lines to begin with.
        tell: receives messages that are not part of the log.
        sleep: waits for seconds.
        clock: monotonic seconds.
    """

    client: NimbusClient
    name: str
    lines: int
    tell: Callable[[str], object] = lambda text: echo(text, err=True)
    sleep: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        # A part may end within a character.
        self._position: int | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def blocks(self, follow: bool) -> Iterator[str]:
        """Yields parts of the log, which may end within a line.

        Raises:
            NotAliveError: there is no such topology, or it has no log.
        """
        try:
            link = self._link()
        except NotAliveError as error:
            yield self._kept(error)
            return
        if not follow:
            if not link:
                raise NotAliveError(f"{self.name} has no log yet: no driver has started, or its supervisor is gone")
            yield self._read(link)
            return
        asked_at = self.clock()
        while True:
            text = self._read_if_there(link)
            if text:
                yield text
                continue
            self.sleep(_LOOK_SECS)
            if self.clock() - asked_at < _WHERE_SECS:
                continue
            asked_at = self.clock()
            try:
                now = self._link()
            except NotAliveError:
                self.tell(f"{self.name} is gone.")
                return
            if now and now != link:
                if link:
                    self.tell(f"The driver of {self.name} has moved; its log:")
                link, self._position = now, None

    def _kept(self, error: NotAliveError) -> str:
        """Returns the end of the last log of a topology that no longer exists.

        Raises:
            NotAliveError: no host has kept its logs.
        """
        kept = self.client.kept_logs(self.name)
        if not kept:
            raise NotAliveError(f"{error}, and no host has kept logs of it") from error
        last = kept[0]
        when = datetime.fromtimestamp(last.modified).astimezone()
        self.tell(
            f"{last.topology_id} no longer exists. Its last log, on {last.host} (slot {last.port}), ends at "
            f"{when:%Y-%m-%d %H:%M:%S}:"
        )
        others = sorted({each.topology_id for each in kept} - {last.topology_id})
        if others:
            self.tell(f"There are also logs of {', '.join(others[-5:])}; give the id to see those.")
        return self._read(last.link)

    def _link(self) -> str:
        return str(self.client.topology(self.name)["logLink"])

    def _read_if_there(self, link: str) -> str:
        from storm_on_spark.cluster.errors import UnavailableError

        try:
            return self._read(link) if link else ""
        except (NotAliveError, UnavailableError):  # the driver, or its supervisor, is just starting
            return ""

    def _read(self, link: str) -> str:
        """Returns the new part of a log."""
        if self._position is None:
            self._decoder.reset()
            part = self.client.log(link, -_TAIL_BYTES, _TAIL_BYTES)
            self._position = part.start + len(part.data)
            return last_lines(self._decoder.decode(part.data), self.lines)
        part = self.client.log(link, self._position)
        if part.size < self._position:  # the file was replaced
            self._decoder.reset()
            part = self.client.log(link, 0)
        self._position = part.start + len(part.data)
        return self._decoder.decode(part.data)


def whole_lines(blocks: Iterable[str]) -> Iterator[str]:
    r"""Yields the lines of a text that comes in blocks.

    >>> list(whole_lines(["a\nb", "c\n", "d"]))
    ['a', 'bc', 'd']
    """
    rest = ""
    for block in blocks:
        *lines, rest = (rest + block).split("\n")
        yield from lines
    if rest:
        yield rest


def last_lines(text: str, count: int) -> str:
    r"""Returns the last lines of a text.

    >>> last_lines("a\nb\nc\n", 2), last_lines("a", 5), last_lines("a\n", 0)
    ('b\nc\n', 'a', '')
    """
    lines = [f"{line}\n" for line in lines_of(text)][-count:] if count else []
    return "".join(lines) if text.endswith("\n") else "".join(lines).removesuffix("\n")
