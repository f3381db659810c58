"""A spare driver: Spark runs and is warm, and all that lacks is a topology.

`python -m storm_on_spark.cluster.driver.spare FOLDER LOCK`, started by a supervisor that keeps spares. When it is given
a slot's folder it becomes the driver of that slot. A start of Spark and its first micro-batch take some 20 s of
processor time, so this is what makes a failover quick.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from storm_on_spark.cluster.driver.files import LocalBeat, RunFolder
from storm_on_spark.runtime.processes import credentials
from storm_on_spark.runtime.processes.diagnostics import log_levels
from storm_on_spark.runtime.processes.lock_file import locked
from storm_on_spark.runtime.processes.sessions import session_members

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_SECS = 0.05


def main() -> None:
    """Gets warm, waits for a slot, and runs its topology."""
    folder = RunFolder(Path(sys.argv[1]))
    os.set_inheritable(int(sys.argv[2]), False)
    parent = os.getppid()
    # Before Spark starts: its workers inherit it.
    os.environ[log_levels.VARIABLE] = str(folder.log_levels)
    os.environ[credentials.VARIABLE] = str(folder.credentials)

    from storm_on_spark.launch.conf_text import spark_conf
    from storm_on_spark.spark.session import local_session
    from storm_on_spark.spark.warm_up import warm_up

    conf = spark_conf(folder.spare().cluster)
    session = local_session(conf.pop("spark.master", None), conf)
    warm_up(session)
    folder.write(LocalBeat(number=1, step="starting", status="", message="ready"))
    while (slot := folder.taken()) is None:
        if os.getppid() != parent:
            _end()  # the supervisor is gone, and the next one keeps its own spares
        time.sleep(_POLL_SECS)
    _become_driver(RunFolder(slot), session)


def _become_driver(slot: RunFolder, session: SparkSession) -> None:
    from storm_on_spark.cluster.driver.begin import process_file
    from storm_on_spark.cluster.driver.main import Driver

    try:
        locked(slot.lock)  # until this process ends
    except BlockingIOError:
        _end()
    spec = slot.spec()
    process = process_file(spec)
    slot.write(process)
    os.chdir(slot.path)
    log = Path(spec.log)
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    sys.stdout.flush()
    sys.stderr.flush()
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    os.close(descriptor)
    Driver(slot, spec, process, session).run()


def _end() -> None:
    for pid in session_members(os.getpid()):
        if pid != os.getpid():
            os.kill(pid, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
