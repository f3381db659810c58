"""Why a query failed, from traces as Spark prints them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from storm_on_spark.api.errors import TopologyFailedError
from storm_on_spark.spark.running.failures import reason_of, reporting_failure

_WORKER = """\
org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent \
failure: Lost task 0.3 in stage 0.0 (TID 4): org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An \
exception was thrown from the Python worker: Traceback (most recent call last):
  File "/app/storm_on_spark/spark/source.py", line 118, in read
    yield from to_batches(execute_stage(worker, stage, bodies, batch_info(), None))
                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
storm_on_spark.api.errors.CheckpointError: spout log /data/spouts/5 is damaged: a chunk has the wrong checksum
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:665)
Caused by: java.io.EOFException
\tat java.base/java.io.DataInputStream.readInt(DataInputStream.java:397)
"""

_DAEMON = """\
org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent \
failure: Lost task 0.3 in stage 0.0 (TID 5) (10.0.0.2 executor 0): org.apache.spark.SparkException:\x20
Error from python worker:
  Traceback (most recent call last):
    File "/app/pyspark/daemon.py", line 127, in manager
      listen_sock.bind(socket_path)
  FileNotFoundError: [Errno 2] No such file or directory
PYTHONPATH was:
  /app
org.apache.spark.SparkException: EOFException occurred while reading the port number from the daemon's stdout.
\tat org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala:357)
"""

_STATE = """\
org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state. \
SQLSTATE: 58030
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotLoadStore(QueryExecutionErrors.scala:1)
Caused by: java.io.IOException: Stream is corrupted
\tat net.jpountz.lz4.LZ4BlockInputStream.refill(LZ4BlockInputStream.java:1)
"""

_SOURCE = """\
java.io.IOException: Broken pipe
\tat java.base/sun.nio.ch.UnixDomainSockets.write0(Native Method)
\tat java.base/java.io.DataOutputStream.flush(DataOutputStream.java:128)
\tat org.apache.spark.sql.execution.python.streaming.PythonStreamingSourceRunner.latestOffset(Python.scala:1)
"""

_TOO_LARGE = """\
org.apache.spark.sql.streaming.StreamingQueryException: An exception was raised by the Python Proxy. Return Message: \
Traceback (most recent call last):
  File "/app/storm_on_spark/spark/sink.py", line 58, in _run
    for row in frame.collect():
               ^^^^^^^^^^^^^^^
py4j.protocol.Py4JJavaError: An error occurred while calling o253.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Total size of serialized results of 1 tasks \
(5.5 MiB) is bigger than spark.driver.maxResultSize (1024.0 KiB)

Caused by: py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: Traceback (most recent \
call last):
"""

_DISK = """\
org.apache.spark.SparkException: Writing job aborted
Caused by: org.apache.spark.SparkException: it failed
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""

_SINK = """\
org.apache.spark.sql.execution.streaming.sources.ForeachBatchUserFuncException: [FOREACH_BATCH_USER_FUNCTION_ERROR] \
An error occurred in the user provided function in foreach batch sink. Reason: An exception was raised by the Python \
Proxy. Return Message: Traceback (most recent call last):
  File "/app/storm_on_spark/spark/sink.py", line 58, in _run
    for row in frame.select("body").collect():
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
py4j.protocol.Py4JJavaError: An error occurred while calling o253.collectToPython.
: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state. \
SQLSTATE: 58030
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotLoadStore(QueryExecutionErrors.scala:1)
Caused by: org.apache.hadoop.fs.ChecksumException: Checksum error: file:/data/state/1/0/15.changelog at 1024
"""


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        (_WORKER, "CheckpointError: spout log /data/spouts/5 is damaged: a chunk has the wrong checksum"),
        (_DAEMON, "FileNotFoundError: [Errno 2] No such file or directory"),
        (
            _STATE,
            "IOException: Stream is corrupted "
            "([CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.)",
        ),
        (
            _SINK,
            "ChecksumException: Checksum error: file:/data/state/1/0/15.changelog at 1024 "
            "([CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.)",
        ),
        (
            _TOO_LARGE,
            "SparkException: Job aborted due to stage failure: Total size of serialized results of 1 tasks (5.5 MiB) "
            "is bigger than spark.driver.maxResultSize (1024.0 KiB)",
        ),
        (_DISK, "IOException: No space left on device"),
        (
            _SOURCE,
            "the process in which Spark asks for new input ended unexpectedly (IOException: Broken pipe); look for "
            "what ended it, such as a lack of memory, and start the topology again: with a checkpoint it continues "
            "where it stopped",
        ),
        ("java.lang.IllegalStateException: boom", "IllegalStateException: boom"),
        ("", "unknown"),
    ],
)
def test_the_reason_is_the_innermost_cause(trace: str, reason: str) -> None:
    assert reason_of(trace) == reason


def test_a_long_reason_is_cut() -> None:
    assert len(reason_of("java.lang.IllegalStateException: " + "x" * 10_000)) < 600


@pytest.mark.parametrize(("owner", "reason"), [(None, "[SOME] of Spark"), ("it was taken over", "it was taken over")])
def test_an_error_of_spark_says_first_that_another_driver_owns_the_checkpoint(owner: str | None, reason: str) -> None:
    fence = SimpleNamespace(lost=lambda: owner)
    with pytest.raises(TopologyFailedError) as raised, reporting_failure("words", fence):
        raise PySparkException("[SOME] of Spark")
    assert raised.value.reason == reason
