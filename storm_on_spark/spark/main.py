"""Running a topology module as a script, with `python job.py` or `spark-submit job.py`.

The command line (`storm-spark run`) does the same with a live table and more options; this is for files that Spark
itself starts. It reports progress in plain lines.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from storm_on_spark.api.config import effective_conf
from storm_on_spark.api.errors import ConfigError, InvalidTopologyError, StormError
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.api.text.printable import printable
from storm_on_spark.api.text.traces import trace_of
from storm_on_spark.api.text.wording import milliseconds
from storm_on_spark.api.topology import Topology
from storm_on_spark.launch.conf_text import merged
from storm_on_spark.launch.document import document, to_json
from storm_on_spark.launch.settings import CheckpointSettings, NameSettings
from storm_on_spark.runtime.processes.ending import at_once
from storm_on_spark.runtime.processes.ending.stop_signals import Stopper
from storm_on_spark.runtime.reports.observer import Lines, Observer
from storm_on_spark.runtime.run.settings import TrackingSettings
from storm_on_spark.spark.checkpoint.temporary import check_temporary
from storm_on_spark.spark.compiled import compile_topology
from storm_on_spark.spark.session import ComingSession, check_session, local_session, log_file, stop_session
from storm_on_spark.spark.session.answer import answer_only
from storm_on_spark.spark.session.folders.owned import temporary_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storm_on_spark.spark.running.topology import TopologyQuery

Build = Callable[[Mapping[str, Any]], Topology]
Report = Callable[[Any, str, TopologyInfo], Any]

_DRAIN_SECS = 60.0


def run_main(
    build: Build,
    conf: Mapping[str, Any] | None = None,
    report: Report | None = None,
    argv: Sequence[str] | None = None,
) -> None:
    """Runs a topology to its end and exits: 0 when it is done, 1 when it failed, 2 for bad usage.

    Options on the command line: `-c KEY=VALUE`, `--conf FILE.yaml`, `--name`, `--checkpoint DIR`, `--json` and
    `--quiet`. Ctrl-C drains; before the topology runs, or the second time, it stops at once.
    The result goes to standard output; progress and the summary go to standard error.

    Args:
        build: returns the topology for a configuration.
        conf: the module's own configuration; the command line overrides it.
        report: called at the end with session, checkpoint directory and `TopologyInfo`; returns the result, such as a
            list of rows.
        argv: the arguments; None for those of the process.

    Raises:
        SystemExit: always.

    Example:
        >>> if __name__ == "__main__":                                                # doctest: +SKIP
        ...     run_main(build, conf, report)
    """
    options = _options(argv)
    outcome = Outcome(options.name)
    with (
        at_once.in_force(),
        answer_only(options.json) as answer,
        at_once.last_words(lambda sentence: _say_stopped(outcome, options, answer, sentence)),
    ):
        try:
            _run(build, {**(conf or {}), **merged(options.files, options.pairs)}, report, options, outcome)
        except (ConfigError, InvalidTopologyError) as error:
            outcome.error, outcome.code = error, 2
        except StormError as error:
            outcome.error, outcome.code = error, 1
        except Exception as error:
            if not options.json:
                raise
            traceback.print_exc()
            outcome.error, outcome.code = error, 1
        _print(outcome, options, answer)
    sys.exit(outcome.code)


@dataclass
class Outcome:
    """How a run ended."""

    name: str | None
    info: TopologyInfo | None = None
    result: Any = None
    error: Exception | None = None
    code: int = 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run this topology until it completes, or Ctrl-C.")
    parser.add_argument(
        "-c", dest="pairs", metavar="KEY=VALUE", action="append", default=[], help="one configuration value, as in YAML"
    )
    parser.add_argument(
        "--conf",
        dest="files",
        metavar="FILE.yaml",
        type=Path,
        action="append",
        default=[],
        help="a YAML file of configuration, also for secrets; -c overrides it",
    )
    parser.add_argument("--name", help="the topology's name; by default the file's name")
    parser.add_argument("--checkpoint", metavar="DIR", help="keep state in DIR, and continue from it")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--quiet", action="store_true", help="print no progress and no summary")
    return parser.parse_args(argv)


def _run(
    build: Build, conf: dict[str, Any], report: Report | None, options: argparse.Namespace, outcome: Outcome
) -> None:
    script = Path(sys.argv[0]).stem.replace("_", "-")
    name = outcome.name = options.name or NameSettings.of(conf).name or script or "topology"
    compiled = compile_topology(build(conf), conf)
    checkpoint = options.checkpoint or CheckpointSettings.of(conf).folder
    if checkpoint is None:
        check_temporary(compiled.graph)
    progress, stopper = _Progress(options.quiet), Stopper()
    progress.say("Starting Spark ...")
    with contextlib.ExitStack() as spark_runs, contextlib.ExitStack() as stack:
        wanted, given = compiled.session_conf(), checkpoint
        coming = ComingSession.local(lambda: spark_runs.enter_context(_session(wanted, given)), None, wanted)
        if checkpoint is None:
            checkpoint = str(stack.enter_context(temporary_checkpoint()))
        query = compiled.start(coming, name=name, checkpoint=checkpoint)
        spark = coming.get()
        # Until the topology runs, one signal is enough, because there is nothing to drain.
        stack.enter_context(stopper.counting())
        progress.begin(query, checkpoint, TrackingSettings.of(effective_conf(conf)))
        try:
            _await(query, progress, stopper)
        finally:
            query.stop()
            outcome.info = query.status_info()
        progress.end(outcome.info)
        if query.failure is not None:
            raise query.failure
        if stopper.count > 1:
            outcome.code = 128 + stopper.number
            return
        if report is not None:
            outcome.result = report(spark, checkpoint, outcome.info)


@contextlib.contextmanager
def _session(conf: Mapping[str, str], checkpoint: str | None) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    ours = SparkSession.getActiveSession() is None
    spark = local_session(conf=conf, checkpoint=checkpoint)
    try:
        for sentence in check_session(spark):
            print(printable(sentence), file=sys.stderr)  # noqa: T201 # this is a program's main
        yield spark
    finally:
        if ours:
            stop_session(spark)


class _Progress:
    """Prints a run's progress to standard error, in the words of `storm-spark run`."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._observer = Observer()
        self._lines = Lines()

    def begin(self, query: TopologyQuery, checkpoint: str, settings: TrackingSettings) -> None:
        timeout_secs = query.message_timeout_secs if settings.timeouts else None
        self._observer = Observer(timeout_secs, query.resumed_batch, checkpoint)
        self.say(self._observer.begins())

    def look(self, info: TopologyInfo, note: str = "") -> None:
        now = time.monotonic()
        self._observer.look(now, info)
        self.say(self._lines.next(now, info, self._observer, note))

    def end(self, info: TopologyInfo) -> None:
        self.say(self._observer.ends(info))

    def say(self, sentence: str | None) -> None:
        if sentence is not None and not self._quiet:
            print(printable(sentence), file=sys.stderr, flush=True)  # noqa: T201 # this is a program's main


def _await(query: TopologyQuery, progress: _Progress, stopper: Stopper) -> None:
    """Returns when the topology has ended, is drained, or must stop at once."""
    until: float | None = None
    while query.isActive and stopper.count < 2:
        now = time.monotonic()
        if stopper.count and until is None:
            until = now + _DRAIN_SECS
            print("Draining; Ctrl-C stops at once", file=sys.stderr)  # noqa: T201
        if until is not None and (query.drain(0) or now > until):
            return
        progress.look(query.status_info(), "" if until is None else f"draining, at most {until - now:.0f} s more")
        query.awaitTermination(0.5)


def _say_stopped(outcome: Outcome, options: argparse.Namespace, answer: TextIO, sentence: str) -> None:
    """Prints the document of a run that a signal ended before the topology ran."""
    if options.json:
        # Not through the stream, because the main thread may hold its lock.
        os.write(answer.fileno(), (to_json(document(outcome.name, outcome.info, sentence, None)) + "\n").encode())


def _print(outcome: Outcome, options: argparse.Namespace, answer: TextIO) -> None:
    """Prints how a run ended: the answer on standard output, the rest on standard error."""
    info, result = outcome.info, outcome.result
    if options.json:
        error = None if outcome.error is None else str(outcome.error)
        print(to_json(document(outcome.name, info, error, result)), file=answer, flush=True)
    if outcome.error is not None:
        _tell(outcome.error, outcome.code)
    elif info is not None and not options.json:
        for row in result if isinstance(result, list) else []:
            cells = row.values() if isinstance(row, dict) else [row]
            print(*(printable(str(cell)) for cell in cells), sep="\t", file=answer)
        if options.quiet:
            return
        latency = info.complete_latency_ms
        text = (
            ""
            if latency is None
            else f", complete latency p50 {milliseconds(latency['p50'])}, p99 {milliseconds(latency['p99'])}"
        )
        print(  # noqa: T201
            f"{info.name}: {info.status}; spouts: {info.emitted} emitted, {info.acked} acked, {info.failed} failed, "
            f"{info.pending} pending in {info.uptime_secs:.1f} s{text}",
            file=sys.stderr,
        )


def _tell(error: Exception, code: int) -> None:
    log = log_file()
    where = "" if code == 2 or log is None else f"\nDetails are in {log}."
    given = f"Its input: {error.input}" if isinstance(error, StormError) and error.input else ""
    trace = "" if code == 2 else trace_of(error).rstrip()
    print(printable("\n".join(filter(None, [f"Error: {error}{where}", given, trace]))), file=sys.stderr)  # noqa: T201
