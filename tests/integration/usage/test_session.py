"""Sessions: what they print, what they leave, and what a session that a user brings lacks."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest
from pyspark.sql import DataFrame, SparkSession

from storm_on_spark.cluster.standalone import StandaloneCluster
from storm_on_spark.spark.query.sink import open_callbacks


def run_python(code: str, tmp_path: Path, **environment: str) -> tuple[str, str]:
    """Runs `code` in a process with a home and temporary folder of its own; returns what it printed."""
    scratch = tmp_path / "tmp"
    scratch.mkdir(exist_ok=True)
    env = {**os.environ, "TMPDIR": str(scratch), "XDG_STATE_HOME": str(tmp_path / "state"), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    left = [path.name for path in scratch.iterdir() if not path.name.startswith("hsperfdata")]
    assert left == []
    return done.stdout, done.stderr


_PRINTING_JOB = """
def work(batches):
    for batch in batches:
        print("worker says", batch.num_rows)
        yield batch
assert spark.range(10).repartition(1).mapInArrow(work, "id long").count() == 10
"""


@pytest.mark.parametrize("master", ["local", pytest.param("local-cluster[1,1,1024]", marks=pytest.mark.soak)])
def test_a_session_starts_and_stops_without_a_trace(tmp_path: Path, master: str) -> None:
    code = f"""
import os, threading, psutil
from storm_on_spark.spark.session import check_session, local_session, log_file, stop_session
names = ("SPARK_HOME", "SPARK_LOCAL_IP", "SPARK_LOCAL_DIRS", "PYSPARK_PYTHON", "JAVA_HOME", "PYSPARK_UDS_MODE")
before = [os.environ.get(name) for name in names]
spark = local_session({master!r})
assert check_session(spark) == (), check_session(spark)
assert [os.environ.get(name) for name in names] == before
assert log_file(spark) == log_file() and log_file().exists()
{_PRINTING_JOB}
stop_session(spark)
assert not psutil.Process().children(recursive=True)
assert [t.name for t in threading.enumerate() if not t.daemon] == ["MainThread"]
spark = local_session("local[1]")   # a new JVM, with its own settings
assert spark.sparkContext.master == "local[1,4]"
assert spark.range(3).count() == 3
"""  # ... and this one is ended by the end of the process
    out, err = run_python(code, tmp_path)
    assert out == ""
    # Executors of a local-cluster write what workers print into files of their own.
    assert err == ("" if "cluster" in master else "worker says 10\n")
    logs = list((tmp_path / "state" / "storm-on-spark" / "logs").iterdir())
    assert logs
    assert all(path.stat().st_mode & 0o077 == 0 for path in logs)


_STRANGER = """
import sys
from storm_on_spark.spark.session import local_session
spark = local_session("local[1]", {"spark.authenticate": "false"})
spark_package = spark._jvm.org.apache.spark
own = (spark.conf.get("spark.driver.port"), "HeartbeatReceiver")
for port, name in (own, *zip(sys.argv[1::2], sys.argv[2::2])):
    address = spark_package.rpc.RpcAddress("127.0.0.1", int(port))
    try:
        spark_package.SparkEnv.get().rpcEnv().setupEndpointRef(address, name)
        print("reached")
    except Exception:
        print("refused")
"""


def test_spark_of_a_session_and_a_standalone_cluster_on_this_host_take_no_messages_of_other_users(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    """The stranger's messages reach its own Spark, which asks for no secret, and not ours."""
    with StandaloneCluster(tmp_path / "spark", 0) as cluster:
        session_port, master_port = spark_session.conf.get("spark.driver.port"), cluster.master.rpartition(":")[2]
        ours = f"sys.argv[1:] = [{session_port!r}, 'HeartbeatReceiver', {master_port!r}, 'Master']"
        answers, _ = run_python(f"import sys\n{ours}\n{_STRANGER}", tmp_path)
        assert answers.split() == ["reached", "refused", "refused"]
        pages = []
        for pid in cluster.processes.values():
            for port in {at.laddr.port for at in psutil.Process(pid).net_connections() if at.status == "LISTEN"}:
                with contextlib.suppress(httpx.HTTPError):  # the port of messages
                    pages.append(httpx.get(f"http://127.0.0.1:{port}/").status_code)
        assert pages == [403]


def test_nobody_but_spark_can_call_into_the_process_of_a_topology(spark_session: SparkSession, tmp_path: Path) -> None:
    open_callbacks(spark_session)
    numbers = []

    def batch(frame: DataFrame, number: int) -> None:
        numbers.append(number)

    rows = spark_session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    for _ in range(2):
        query = rows.writeStream.foreachBatch(batch).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(once=True).start().awaitTermination()
        gateway = spark_session.sparkContext._gateway  # noqa: SLF001 # no public way to its server
        port = gateway._callback_server.port  # noqa: SLF001
        with socket.create_connection(("127.0.0.1", port), 20) as other:
            other.sendall(b"c\np0\ncall\ne\n")
            with contextlib.suppress(ConnectionResetError):
                assert other.recv(100) == b""
    assert numbers == [0, 1]


def test_a_jvm_that_is_killed_before_or_amid_the_stop_leaves_no_traceback_and_can_be_followed_by_another(
    tmp_path: Path,
) -> None:
    code = """
import os, signal, threading, time
from pyspark import SparkContext
from storm_on_spark.spark.session import local_session, stop_session
spark = local_session("local[1]")
spark.sparkContext.range(3).foreach(print)  # Spark has connected to PySpark's server of accumulators now
jvm = SparkContext._gateway.proc
os.kill(jvm.pid, signal.SIGKILL)
jvm.wait()
time.sleep(1.5)  # that server looks once a second
stop_session(spark)
spark = local_session("local[1]")
assert spark.range(3).count() == 3
jvm = SparkContext._gateway.proc
os.kill(jvm.pid, signal.SIGSTOP)
threading.Timer(1.0, os.kill, (jvm.pid, signal.SIGKILL)).start()
stop_session(spark)
"""
    out, err = run_python(code, tmp_path)
    assert out == ""
    assert "Traceback" not in err


def test_a_topology_runs_after_its_user_has_stopped_the_session(tmp_path: Path) -> None:
    # Without the name of this interpreter, Spark's workers are any `python3` that is found, here one without packages.
    (tmp_path / "python3").symlink_to("/bin/false")
    code = """
from storm_on_spark import TopologyBuilder, compile_topology
from storm_on_spark.spark.session import local_session
from storm_on_spark.testing import ListSpout
local_session().stop()
builder = TopologyBuilder()
builder.set_spout("words", ListSpout(["a"], fields=["word"]))
query = compile_topology(builder.create_topology()).start()
assert query.awaitTermination(120) and query.failure is None, query.failure
"""
    run_python(code, tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")


def test_a_process_with_a_thousand_open_files_is_told_so_where_a_topology_would_hang(tmp_path: Path) -> None:
    code = """
import contextlib, os
from storm_on_spark import LocalCluster, SetupError, TopologyBuilder
from storm_on_spark.spark.session import local_session, stop_session
from storm_on_spark.testing import CaptureBolt, ListSpout
spark = local_session("local[1]")
builder = TopologyBuilder()
builder.set_spout("words", ListSpout(["storm"], fields=["word"]))
builder.set_bolt("show", CaptureBolt()).shuffle_grouping("words")
with contextlib.ExitStack() as files:
    for _ in range(1100):
        files.enter_context(open(os.devnull))
    with LocalCluster(spark) as cluster:
        try:
            cluster.submit_topology("many-files", {}, builder.create_topology())
        except SetupError as error:
            print(error)
stop_session(spark)
"""
    out, _ = run_python(code, tmp_path)
    assert "this process has too many open files: Spark's calls into Python wait at file 11" in out


def test_what_a_users_session_lacks_is_said_and_its_settings_are_put_back(tmp_path: Path) -> None:
    code = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
from storm_on_spark.spark.session import check_session, local_session, settings_applied, stop_session
assert local_session() is spark
before = spark.conf.get("spark.sql.adaptive.enabled")
with settings_applied(spark, {"spark.sql.shuffle.partitions": "3"}):
    assert spark.conf.get("spark.sql.adaptive.enabled") == "false"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
assert spark.conf.get("spark.sql.adaptive.enabled") == before
for sentence in check_session(spark):
    print(sentence)
stop_session(spark)
"""
    out, _ = run_python(code, tmp_path)
    assert "local[1], which tries each task once" in out
    assert "small thread stack" in out
    assert all(line.endswith(".") for line in out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'locl[2]'", "Could not parse Master URL"),
        ("'local[1]', {'spark.driver.memory': '1x'}", "Invalid maximum heap size: -Xmx1x"),
        ("'local[1]', {'spark.driver.port': port, 'spark.port.maxRetries': '0'}", "Address already in use"),
    ],
)
def test_a_session_that_does_not_start_says_why_and_leaves_nothing(
    tmp_path: Path, arguments: str, message: str
) -> None:
    code = f"""
import psutil, socket
from storm_on_spark import SetupError
from storm_on_spark.spark.session import local_session
taken = socket.create_server(("127.0.0.1", 0))
port = str(taken.getsockname()[1])
try:
    local_session({arguments})
except SetupError as error:
    print(error)
assert not psutil.Process().children(recursive=True)
"""
    out, err = run_python(code, tmp_path)
    assert out.startswith("Spark does not start: ")
    assert message in out
    assert str(tmp_path / "state") in out
    assert err == ""


@pytest.mark.soak
def test_jobs_allocate_nothing_that_the_garbage_collector_calls_humongous(tmp_path: Path) -> None:
    code = """
from storm_on_spark.spark.session import local_session, stop_session
options = "-XX:+UseG1GC -XX:InitiatingHeapOccupancyPercent=10 -Xlog:gc:file=gc.log"
spark = local_session("local[1]", {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": options})
for _ in range(60):
    assert spark.range(3).count() == 3
stop_session(spark)
"""
    run_python(code, tmp_path)
    pauses = [line for line in (tmp_path / "gc.log").read_text().splitlines() if "Pause" in line]
    assert pauses
    assert not [line for line in pauses if "Humongous" in line]
