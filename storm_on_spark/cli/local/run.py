"""`storm-spark run`: runs a topology until it completes, fails or is stopped."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
from rich.console import Console

from storm_on_spark.api.config import Config, effective_conf
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.api.text.printable import printable
from storm_on_spark.cli.client.needs import need_pages
from storm_on_spark.cli.local.request import Request
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import DONE, exit_code, record, reporting_errors, sentence, tell
from storm_on_spark.cli.shared.pipes import reader_may_leave
from storm_on_spark.cli.shared.progress import Progress
from storm_on_spark.cli.shared.report import print_result, print_summary
from storm_on_spark.cli.shared.terminal import console, logs_to
from storm_on_spark.launch.document import document, to_json
from storm_on_spark.launch.loader import load
from storm_on_spark.launch.settings import CheckpointSettings
from storm_on_spark.runtime.processes.ending import at_once
from storm_on_spark.runtime.processes.ending.stop_signals import Stopper
from storm_on_spark.runtime.reports.observer import Observer
from storm_on_spark.runtime.run.settings import TrackingSettings
from storm_on_spark.spark.session.answer import answer_only
from storm_on_spark.spark.session.folders.owned import temporary_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storm_on_spark.spark.running.topology import TopologyQuery

_DRAIN_LOOK_SECS = 0.2
"""How often it is looked at whether everything is drained."""


@dataclass
class Outcome:
    """How a run ended."""

    name: str | None = None
    info: TopologyInfo | None = None
    error: BaseException | None = None
    log: Path | None = None
    result: Any = None
    stopped: int | None = None
    """The signal that ended it at once."""
    how: str = "stopped at once by a second signal"
    """How that signal ended it."""

    @property
    def code(self) -> int:
        """The exit code."""
        if self.stopped is not None:
            return 128 + self.stopped
        return DONE if self.error is None else exit_code(self.error)


@click.command("run", short_help="Run a topology here.")
@options.target
@options.configuration
@options.master
@click.option("--checkpoint", metavar="DIR", help="Keep state in DIR, and continue from it.")
@click.option("--reset-checkpoint", is_flag=True, help="First remove the state in the checkpoint.")
@options.name_or_n
@click.option(
    "-t", "--time", "--seconds", "seconds", type=options.POSITIVE_SECONDS, help="Drain and end after this many seconds."
)
@click.option("--ui", is_flag=True, help="Show the topology in a browser while it runs; prints a link that logs in.")
@click.option(
    "--ui-port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="With --ui: the port; 0 for any free one.",
)
@click.option("--json", is_flag=True, help="Print one JSON document on standard output.")
@click.option("--quiet", is_flag=True, help="Show no progress and no summary.")
@click.option(
    "--debugger",
    is_flag=True,
    help="Run in this process, without Spark: breakpoint() works in spouts and bolts.",
)
@click.option(
    "--debugger-port",
    metavar="PORT",
    type=click.IntRange(1, 65535),
    help="Like --debugger, for a debugger that connects to PORT of this machine with debugpy, as editors do.",
)
@options.debug
def command(**given: Any) -> None:
    """Run a topology until all its spouts are exhausted, it fails, or Ctrl-C.

    The target is a Python file or a module with a `topology`, a function `build(conf)` that returns one, or
    a subclass of streamparse.Topology. In the folder of a streamparse project, -n NAME is enough. The module
    may have its own `conf`, and a function `report(spark, checkpoint, info)`, which is called at the end and
    returns the result, for example a list of rows.

    The first Ctrl-C stops the spouts, waits until nothing is pending, reports, and exits with 0. The second
    one stops at once and exits with 130; before the topology runs, the first one does. SIGTERM (exit code 143)
    and SIGHUP (129) count as Ctrl-C. By default the first exception in a bolt ends the run
    (topology.fail.fast=true).
    """
    with reporting_errors(given["debug"], given["json"]):
        given["target"] = options.target_of(given["target"], given["name"])
    request = Request(**given)
    with reporting_errors(request.debug, request.json):
        if request.ui:
            need_pages("--ui")
        if request.ui and (request.debugger or request.debugger_port is not None):
            raise ConfigError("--ui shows a topology on Spark: leave --debugger out, or --ui")
    if request.debugger or request.debugger_port is not None:
        from storm_on_spark.cli.local.debugger import run_under_debugger

        # Before standard output is replaced, because pdb's prompt edits lines only on the terminal itself.
        sys.exit(run_under_debugger(request))
    with answer_only(request.json) as answer:
        code = run(request, answer)
    sys.exit(code)


def run(request: Request, answer: TextIO) -> int:
    """Runs the topology, reports, and returns the exit code."""
    screen = console(sys.stderr)
    outcome = Outcome(name=request.name)
    stopper = Stopper()
    try:
        with at_once.last_words(lambda sentence: _say_stopped(request, outcome, answer, sentence)):
            _run(request, outcome, stopper, screen)
    except KeyboardInterrupt:  # only outside the command line, which handles the signal
        outcome.stopped, outcome.how = signal.SIGINT, "stopped before the topology ran"
    except Exception as error:
        outcome.error = outcome.error or error
        if request.debug:
            traceback.print_exc()
    _report(request, outcome, answer)
    return outcome.code


def _run(request: Request, outcome: Outcome, stopper: Stopper, screen: Console) -> None:
    from storm_on_spark.spark.checkpoint.directory import check_place
    from storm_on_spark.spark.checkpoint.stored import is_in_a_store, reset_stored
    from storm_on_spark.spark.checkpoint.temporary import check_temporary
    from storm_on_spark.spark.compiled import compile_topology
    from storm_on_spark.spark.session import ComingSession

    target = request.loaded or load(request.target)
    outcome.name = request.name or target.name
    given = options.conf_of(target, request.files, request.pairs, quiet=request.quiet)
    outcome.name = options.name_of(request.name, given, target)
    conf = {Config.TOPOLOGY_FAIL_FAST: True, **given}
    checkpoint = request.checkpoint or CheckpointSettings.of(conf).folder
    compiled = compile_topology(target.topology(conf), conf)
    compiled.check()
    in_store = checkpoint is not None and is_in_a_store(checkpoint)
    if request.reset_checkpoint and not in_store:
        _reset(checkpoint)
    if checkpoint is None:
        check_temporary(compiled.graph)
    else:
        check_place(checkpoint)
    with (
        # Outermost, so that signals are counted until everything has ended.
        contextlib.ExitStack() as stack,
        Progress(screen, quiet=request.quiet) as progress,
        _kept_or_temporary(checkpoint) as checkpoint,
        contextlib.ExitStack() as spark_runs,
    ):
        wanted = compiled.session_conf()
        # Before anything runs, as the port may be taken.
        listener = stack.enter_context(_listener(request.ui_port)) if request.ui else None

        def start_spark() -> SparkSession:
            session: SparkSession = spark_runs.enter_context(_session(request, wanted, checkpoint, outcome, progress))
            return session

        progress.say("Starting Spark ...")
        coming = ComingSession.local(start_spark, request.master, wanted)
        if request.reset_checkpoint and in_store:
            # Only a session knows how to reach the store.
            reset_stored(checkpoint, coming.get())
        with progress.beginning() as began:
            query = compiled.start(coming, name=outcome.name, checkpoint=checkpoint, began=began)
        spark = coming.get()
        tracking = TrackingSettings.of(effective_conf(conf))
        progress.observer = _observer(query, tracking, checkpoint)
        progress.tell(progress.observer.begins())
        if listener is not None:
            # Also with --quiet: without the link there is no way in.
            link = stack.enter_context(_pages(query, listener, outcome, stopper))
            screen.print(link, markup=False, soft_wrap=True)
        # Until the topology runs, one signal is enough, because there is nothing to drain.
        stack.enter_context(stopper.counting())
        try:
            _watch(query, request, tracking, stopper, progress, screen)
        finally:
            query.stop()
            outcome.info = query.status_info()
            outcome.error = query.failure
        progress.tell(progress.observer.ends(outcome.info))
        outcome.stopped = stopper.number if stopper.count > 1 else None
        if target.report is not None and outcome.error is None and outcome.stopped is None:
            outcome.result = target.call(target.report, spark, checkpoint, outcome.info)


def _listener(port: int) -> socket.socket:
    from storm_on_spark.web.serving import listen_here

    return listen_here(port)


@contextlib.contextmanager
def _pages(query: TopologyQuery, listener: socket.socket, outcome: Outcome, stopper: Stopper) -> Iterator[str]:
    """Serves the pages of the topology, and yields what to tell of it; who ends it there ends it as Ctrl-C does."""
    from storm_on_spark.web.serving import RunPages

    with RunPages(query, listener, outcome.log, stopper.drain) as pages:
        yield printable(f"Pages of {outcome.name}: {pages.link()}")


def _observer(query: TopologyQuery, settings: TrackingSettings, checkpoint: str) -> Observer:
    return Observer(float(settings.timeout_secs) if settings.timeouts else None, query.resumed_batch, checkpoint)


def _ui(spark: SparkSession) -> str | None:
    url = spark.sparkContext.uiWebUrl
    return None if url is None else f"Spark's UI: {url}"


@contextlib.contextmanager
def _kept_or_temporary(checkpoint: str | None) -> Iterator[str]:
    if checkpoint is not None:
        yield checkpoint
        return
    with temporary_checkpoint() as folder:
        yield str(folder)


@contextlib.contextmanager
def _session(
    request: Request, conf: dict[str, str], checkpoint: str, outcome: Outcome, progress: Progress
) -> Iterator[Any]:
    from storm_on_spark.spark.session import local_session, log_file, stop_session

    try:
        spark = local_session(request.master, conf, checkpoint)
    finally:
        outcome.log = log_file()
    try:
        with logs_to(console(sys.stderr), outcome.log, debug=request.debug):
            progress.tell(_ui(spark))
            yield spark
    finally:
        stop_session(spark)


def _watch(
    query: TopologyQuery,
    request: Request,
    settings: TrackingSettings,
    stopper: Stopper,
    progress: Progress,
    screen: Console,
) -> None:
    """Returns when the topology has ended, is drained, or must stop at once."""
    started = time.monotonic()
    # A tree that hangs fails after at most twice the timeout; then nothing is pending.
    patience = 2.0 * settings.timeout_secs + 5.0
    drain_until: float | None = None
    query.when_ended(stopper.stirred.set)
    while True:
        stopper.stirred.clear()  # before what it may be set for is looked at
        if not query.isActive or stopper.count > 1:
            break
        now = time.monotonic()
        left = math.inf if request.seconds is None else started + request.seconds - now
        if drain_until is None and (stopper.count or left <= 0):
            drain_until = now + patience
            progress.say(
                f"Draining: at most {patience:.0f} s; Ctrl-C stops at once" if stopper.count else "Draining ..."
            )
        if drain_until is not None:
            if query.drain(0):
                return
            if now > drain_until:
                screen.print("Not everything could be drained in time; see pending.")
                return
        note = "" if drain_until is None else f"draining, at most {drain_until - now:.0f} s more"
        progress.show(query.status_info(), note)
        pause = progress.observer.pause()
        stopper.stirred.wait(min(pause, left) if drain_until is None else _DRAIN_LOOK_SECS)
    query.awaitTermination(0)  # raises why it failed


def _reset(checkpoint: str | None) -> None:
    from storm_on_spark.spark.checkpoint.directory import reset_checkpoint

    if checkpoint is None:
        raise ConfigError("--reset-checkpoint needs --checkpoint DIR, the directory to reset")
    reset_checkpoint(checkpoint)


def _say_stopped(request: Request, outcome: Outcome, answer: TextIO, sentence: str) -> None:
    """Prints the document of a run that a signal ended before the topology ran."""
    if request.json:
        found = to_json(document(outcome.name, outcome.info, sentence, None))
        # Not through the stream, because the main thread may hold its lock.
        os.write(answer.fileno(), f"{found}\n".encode())


def _report(request: Request, outcome: Outcome, answer: TextIO) -> None:
    message = None if outcome.error is None else sentence(outcome.error)
    if outcome.stopped is not None:
        message = message or outcome.how
    # Report and return the end of the run even if nobody reads the answer.
    with reader_may_leave(answer):
        if request.json:
            found = document(outcome.name, outcome.info, message, outcome.result)
            print(to_json(found), file=answer)
        else:
            screen = console(answer)
            if outcome.result is not None:
                print_result(screen, outcome.result)
            if outcome.info is not None and not request.quiet:
                print_summary(screen, outcome.info)
    if outcome.error is not None:
        if request.debug and (trace := getattr(outcome.error, "cause_text", "")):
            echo(trace.rstrip(), err=True)
        if outcome.log is not None:
            record(outcome.error, outcome.log)
        tell(outcome.error, outcome.log)
    elif message:
        echo(message, err=True)
