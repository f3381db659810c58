"""`--watch`: repeats a request and shows the answer until Ctrl-C."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.runtime.processes.ending.at_once import interrupts_raised

if TYPE_CHECKING:
    from rich.console import Console

    from storm_on_spark.cli.client.asking import Given

_Function = TypeVar("_Function", bound=Callable[..., Any])

EVERY_SECS = 2.0


def watch_option(function: _Function) -> _Function:
    """Adds `--watch`."""
    return click.option("--watch", is_flag=True, help="Repeat every 2 seconds until Ctrl-C.")(function)


def watched(
    request: Given,
    ask: Callable[[], Any],
    show: Callable[[Console, Any], None],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Shows the answer repeatedly: in place on a terminal, otherwise one below the other.

    Args:
        request: the command line's settings.
        ask: asks the cluster.
        show: prints an answer.
        sleep: waits between two requests.

    Raises:
        ConfigError: `--json` was given too, which prints one document.
    """
    from storm_on_spark.cli.shared.terminal import console

    if request.json:
        raise ConfigError("--watch can't be given with --json, which prints one document")
    screen = console(sys.stdout)
    with contextlib.suppress(KeyboardInterrupt), interrupts_raised():
        if not screen.is_terminal:
            while True:
                show(screen, ask())
                screen.print("")
                sleep(EVERY_SECS)
        _redraw(screen, ask, show, sleep)


def _redraw(
    screen: Console, ask: Callable[[], Any], show: Callable[[Console, Any], None], sleep: Callable[[float], None]
) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    # After Ctrl-C the last answer stays above the prompt, and the cursor is shown again.
    with Live(Text(""), console=screen, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            page = Console(file=io.StringIO(), width=screen.width, force_terminal=True, highlight=False)
            show(page, ask())
            live.update(Text.from_ansi(page.file.getvalue()), refresh=True)  # type: ignore[attr-defined]
            sleep(EVERY_SECS)
