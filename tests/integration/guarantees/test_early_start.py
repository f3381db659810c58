"""A new topology begins before Spark does: what is acked by then is never lost, and nothing is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from lengths import PATIENCE_SECS
from pyspark.sql import SparkSession
from topologies.early import build, counts, numbers_in
from waiting import eventually

from storm_on_spark import compile_topology
from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.info import TopologyInfo
from storm_on_spark.runtime.live.processes import early
from storm_on_spark.runtime.processes.run_folder import run_folder
from storm_on_spark.spark.session import ComingSession

FEW = 200
LIVE = "storm_on_spark.runtime.live.processes.process"


class Coming:
    """A session that comes once messages are acked, or not at all."""

    def __init__(self, outcome: SparkSession | Exception) -> None:
        self.outcome = outcome
        self.acked = self.acked_before = 0

    def began(self, info: Callable[[], TopologyInfo]) -> None:
        self.info = info

    def start(self) -> SparkSession:
        self.acked_before = self.info().acked
        eventually(lambda: self.info().acked >= FEW)
        self.acked = self.info().acked
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def run_to_end(spark: SparkSession, folder: Path, coming: Coming | None = None) -> TopologyInfo:
    (folder / "end").touch()
    session = spark if coming is None else ComingSession(coming.start, "local[2]", 2)
    began = None if coming is None else coming.began
    query = compile_topology(build(folder)).start(session, "early", checkpoint=folder / "checkpoint", began=began)
    try:
        assert query.awaitTermination(PATIENCE_SECS)
    finally:
        query.stop()
    return query.status_info()


def nothing_is_left() -> bool:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if LIVE.encode() in words and any(run_folder(word.decode()).exists() for word in words[3:]):
                return False
    return True


def test_messages_are_acked_before_there_is_a_session_and_its_first_micro_batch_takes_them_over(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early, "_FIRST_SECS", PATIENCE_SECS)
    monkeypatch.setattr(early, "_BEGUN_SECS", PATIENCE_SECS)
    coming = Coming(spark_session)
    info = run_to_end(spark_session, tmp_path, coming)
    assert coming.acked_before, "Spark starts after the first ack"
    assert coming.acked >= FEW
    assert (info.status, info.acked, info.failed, info.pending) == ("COMPLETED", info.emitted, 0, 0)
    assert counts(spark_session, tmp_path) == Counter(range(info.emitted))
    eventually(nothing_is_left)


def test_spark_does_not_start_and_the_next_start_counts_every_message_once(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    coming = Coming(SetupError("no Java"))
    session = ComingSession(coming.start, "local[2]", 2)
    compiled = compile_topology(build(tmp_path))
    with pytest.raises(SetupError, match="no Java"):
        compiled.start(session, "early", checkpoint=tmp_path / "checkpoint", began=coming.began)
    assert coming.acked >= FEW
    eventually(nothing_is_left)
    info = run_to_end(spark_session, tmp_path)
    assert counts(spark_session, tmp_path) == Counter(range(numbers_in(tmp_path)))
    # What was acked before isn't sent again.
    assert info.emitted <= numbers_in(tmp_path) - coming.acked


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.soak)])
def test_the_driver_ends_while_spark_starts_and_the_next_start_counts_every_message_once(
    spark_session: SparkSession, tmp_path: Path, number: signal.Signals
) -> None:
    words = [sys.executable, str(Path(__file__).parents[1] / "topologies" / "early.py"), str(tmp_path)]
    driver = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert driver.stdout is not None
    acked = int(driver.stdout.readline())
    driver.send_signal(number)
    assert driver.wait(30) != 0
    driver.stdout.close()
    eventually(nothing_is_left)
    run_to_end(spark_session, tmp_path)
    assert acked >= FEW
    assert counts(spark_session, tmp_path) == Counter(range(numbers_in(tmp_path)))
