"""Running a topology module as a script: by `python job.py` and by `spark-submit job.py`.

The command line (`storm-spark run`) does the same with progress and more options; this is what a file needs that
Spark itself starts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import ConfigError, InvalidTopologyError, StormError
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.api.topology import Topology
from storm_on_spark.spark.compiled import compile_topology
from storm_on_spark.spark.conf_text import merged, spark_conf
from storm_on_spark.spark.session import check_session, local_session, log_file, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storm_on_spark.spark.query import TopologyQuery

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

    Options on the command line: `-c KEY=VALUE`, `--name`, `--checkpoint DIR` and `--json`. Ctrl-C drains. The result
    goes to standard output, all else to standard error.

    Args:
        build: returns the topology for a configuration.
        conf: the module's own configuration; what the command line says goes over it.
        report: called at the end with session, checkpoint directory and `TopologyInfo`; returns the result, such as a
            list of rows.
        argv: the arguments; those of the process for None.

    Raises:
        SystemExit: always.

    Example:
        >>> if __name__ == "__main__":                                                # doctest: +SKIP
        ...     run_main(build, conf, report)
    """
    options = _options(argv)
    try:
        code = _run(build, {**(conf or {}), **merged((), options.pairs)}, report, options)
    except (ConfigError, InvalidTopologyError) as error:
        code = _tell(error, 2)
    except StormError as error:
        code = _tell(error, 1)
    sys.exit(code)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run this topology until it ends by itself, or Ctrl-C.")
    parser.add_argument(
        "-c", dest="pairs", metavar="KEY=VALUE", action="append", default=[], help="one configuration value, as in YAML"
    )
    parser.add_argument("--name", help="the topology's name; by default that of the file")
    parser.add_argument("--checkpoint", metavar="DIR", help="keep state in DIR, and go on from what is there")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser.parse_args(argv)


def _run(build: Build, conf: dict[str, Any], report: Report | None, options: argparse.Namespace) -> int:
    name = options.name or Path(sys.argv[0]).stem.replace("_", "-") or "topology"
    compiled = compile_topology(build(conf), conf)
    with _session(conf) as spark, contextlib.ExitStack() as stack:
        checkpoint = options.checkpoint or conf.get(Config.TOPOLOGY_CHECKPOINT_DIR)
        if checkpoint is None:
            checkpoint = stack.enter_context(tempfile.TemporaryDirectory(prefix="storm-on-spark-"))
        query = compiled.start(spark, name=name, checkpoint=checkpoint)
        try:
            _await(query)
        finally:
            query.stop()
        info = query.status_info()
        if query.failure is not None:
            raise query.failure
        result = None if report is None else report(spark, checkpoint, info)
    _print(info, result, as_json=options.json)
    return 0


@contextlib.contextmanager
def _session(conf: Mapping[str, Any]) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    ours = SparkSession.getActiveSession() is None
    spark = local_session(conf=spark_conf(conf))
    try:
        for sentence in check_session(spark):
            print(sentence, file=sys.stderr)  # noqa: T201 # this is a program's main
        yield spark
    finally:
        if ours:
            stop_session(spark)


def _await(query: TopologyQuery) -> None:
    try:
        while query.isActive:
            query.awaitTermination(0.5)
    except KeyboardInterrupt:
        print("Draining; Ctrl-C stops at once", file=sys.stderr)  # noqa: T201
        query.drain(_DRAIN_SECS)


def _print(info: TopologyInfo, result: Any, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({**info.to_dict(), "result": result}, default=str))  # noqa: T201
        return
    for row in result if isinstance(result, list) else []:
        print(*(row.values() if isinstance(row, dict) else [row]), sep="\t")  # noqa: T201
    latency = info.complete_latency_ms
    text = "" if latency is None else f", complete latency p50 {latency['p50']:.0f} ms, p99 {latency['p99']:.0f} ms"
    print(  # noqa: T201
        f"{info.name}: {info.status}, {info.emitted} emitted, {info.acked} acked, {info.failed} failed, "
        f"{info.pending} pending in {info.uptime_secs:.1f} s{text}",
        file=sys.stderr,
    )


def _tell(error: Exception, code: int) -> int:
    log = log_file()
    where = "" if code == 2 or log is None else f"\nDetails are in {log}."
    print(f"Error: {error}{where}", file=sys.stderr)  # noqa: T201
    return code
