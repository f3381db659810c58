"""A Nimbus, a supervisor or a Pacemaker in a separate process.

    python -m storm_on_spark.testing.simulated.daemon nimbus CONF.json
    python -m storm_on_spark.testing.simulated.daemon supervisor CONF.json DRIVER_MODULE
    python -m storm_on_spark.testing.simulated.daemon pacemaker CONF.json

Each prints one line when it is up: a Nimbus or a Pacemaker its address, a supervisor its id. SIGTERM ends it; a
supervisor then leaves its drivers running. On SIGUSR1 it ends them too. If a Nimbus finds a step of a submission in the
file `armed` beside its configuration, it kills or stops itself at that step, because faults from outside never hit a
step that lasts a millisecond.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from storm_on_spark.runtime.processes.ending.signals import InterruptibleEvent, setting

log = logging.getLogger(__name__)

FAULTS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
ARMED = "armed"
"""File with a step and a fault."""


def main(kind: str, conf_file: str, *more: str) -> int:
    """Runs until it is asked to end."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    ended = InterruptibleEvent()
    signal.signal(signal.SIGTERM, setting(ended))
    conf = json.loads(Path(conf_file).read_text("utf-8"))
    if kind == "nimbus":
        _nimbus(conf, ended, Path(conf_file).with_name(ARMED))
    elif kind == "pacemaker":
        _pacemaker(conf, ended)
    else:
        _supervisor(conf, ended, *more)
    return 0


def _nimbus(conf: dict[str, object], ended: threading.Event, armed: Path) -> None:
    from storm_on_spark.cluster.daemons.nimbus import Nimbus

    def on_step(step: str, topology_id: str) -> None:
        log.info("step %s of %s", step, topology_id)
        with contextlib.suppress(FileNotFoundError):
            fatal, fault = armed.read_text("utf-8").split()
            if step == fatal:
                armed.unlink()
                os.kill(os.getpid(), FAULTS[fault])

    with Nimbus(conf, port=0, on_step=on_step) as nimbus:
        _say(nimbus.address)
        ended.wait()


def _pacemaker(conf: dict[str, object], ended: threading.Event) -> None:
    from storm_on_spark.cluster.pacemaker.server import PacemakerServer

    with PacemakerServer(conf) as server:
        _say(server.address)
        ended.wait()


def _supervisor(conf: dict[str, object], ended: threading.Event, driver: str) -> None:
    from storm_on_spark.cluster.daemons.supervisor import Supervisor

    drivers = False

    def end_all(number: int, frame: FrameType | None) -> None:
        nonlocal drivers
        drivers = True
        setting(ended)(number, frame)

    signal.signal(signal.SIGUSR1, end_all)
    supervisor = Supervisor(conf, driver)
    supervisor.start()
    _say(supervisor.supervisor_id)
    ended.wait()
    supervisor.stop(drivers=drivers)


def _say(what: str) -> None:
    sys.stdout.write(what + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
