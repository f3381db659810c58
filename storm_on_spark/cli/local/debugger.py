"""`storm-spark run --debugger`: the topology on the main thread of this process, and the terminal is the user's."""

from __future__ import annotations

import bdb
import contextlib
import importlib
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.cli.shared import options
from storm_on_spark.cli.shared.echo import echo
from storm_on_spark.cli.shared.errors import DONE, STOPPED, exit_code, tell
from storm_on_spark.cli.shared.report import print_summary
from storm_on_spark.cli.shared.terminal import console, logs_to
from storm_on_spark.launch.loader import load
from storm_on_spark.launch.settings import PlaceSettings
from storm_on_spark.runtime.processes.ending.at_once import interrupts_raised
from storm_on_spark.runtime.processes.ending.signals import put_back

if TYPE_CHECKING:
    from storm_on_spark.cli.local.request import Request

_HOST = "127.0.0.1"


class _QuitDebugger(BaseException):
    """The user has left the debugger. It is not an `Exception`, because errors of bolts are caught."""


def run_under_debugger(request: Request) -> int:
    """Runs the topology, and returns the exit code."""
    try:
        _refuse(request)
        return _run(request)
    except Exception as error:
        tell(error)
        return exit_code(error)


def _run(request: Request) -> int:
    from storm_on_spark.runtime.in_process import InProcessTopology
    from storm_on_spark.spark.compiled import compile_topology

    target = request.loaded or load(request.target)
    given = options.conf_of(target, request.files, request.pairs, quiet=request.quiet)
    name = options.name_of(request.name, given, target)
    # Time passes while a user inspects variables.
    conf = {Config.TOPOLOGY_FAIL_FAST: True, Config.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS: False, **given}
    compiled = compile_topology(target.topology(conf), conf)
    topology = InProcessTopology(compiled.graph, name)
    started = time.monotonic()
    stopped = False
    with (
        interrupts_raised(),
        _waiting(request.debugger_port),
        _quitting(),
        logs_to(console(sys.stderr), None, debug=request.debug),
    ):
        if not request.quiet:
            how = "breakpoint() stops it" if request.debugger_port is None else "its debugger is connected"
            echo(f"{name} runs in this process, without Spark; {how}. Messages don't time out.", err=True)
            if PlaceSettings.of(conf).spouts == "executors":
                echo("Its spouts run here too: topology.spouts.placement has no effect.", err=True)
        try:
            topology.run(lambda: request.seconds is None or time.monotonic() - started < request.seconds)
        except (KeyboardInterrupt, _QuitDebugger):
            stopped = True
    if not request.quiet:
        print_summary(console(sys.stdout), topology.info())
        if target.report is not None and not stopped and topology.failure is None:
            echo("The module's report reads Spark's state, so it is not called.", err=True)
    if stopped:
        echo("Stopped in the debugger, or by Ctrl-C.", err=True)
        return STOPPED
    if topology.failure is not None:
        tell(topology.failure)
        return exit_code(topology.failure)
    return DONE


def _refuse(request: Request) -> None:
    for option, given in (
        ("--json", request.json),
        ("--checkpoint", request.checkpoint),
        ("--reset-checkpoint", request.reset_checkpoint),
        ("--master", request.master),
    ):
        if given:
            raise ConfigError(
                f"{option} can't be given with --debugger, which runs the topology in this process, without Spark "
                "and without a checkpoint, and leaves the terminal to you"
            )


@contextlib.contextmanager
def _quitting() -> Iterator[None]:
    """Ends the run when the user leaves pdb, which would otherwise count as an exception of the bolt.

    Inside, Python handles Ctrl-C: it stops the run, or enters pdb if pdb is active.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    # pdb raises the exception with this name, whether it was called by breakpoint(), pdb.set_trace() or ipdb.
    quits, bdb.BdbQuit = bdb.BdbQuit, _QuitDebugger  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        bdb.BdbQuit = quits  # type: ignore[misc]
        put_back({signal.SIGINT: before})


@contextlib.contextmanager
def _waiting(port: int | None) -> Iterator[None]:
    """Waits until a debugger is connected, if a port was given."""
    if port is None:
        yield
        return
    try:
        debugpy: Any = importlib.import_module("debugpy")
    except ImportError as error:
        raise SetupError(needs_extra("--debugger-port", "debug", "debugpy")) from error
    try:
        debugpy.listen((_HOST, port))
    except (OSError, RuntimeError) as error:
        raise SetupError(
            f"--debugger-port {port}: can't listen for a debugger on this port: {error}; choose another"
        ) from error
    echo(
        f"Waiting for a debugger on {_HOST}:{port}; Ctrl-C ends. Every user of this host can connect and run code as "
        "you.",
        err=True,
    )
    try:
        debugpy.wait_for_client()
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    hook: Callable[..., Any] = sys.breakpointhook
    sys.breakpointhook = debugpy.breakpoint
    try:
        yield
    finally:
        sys.breakpointhook = hook
