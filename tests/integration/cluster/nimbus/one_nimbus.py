"""A Nimbus in a process of its own, for tests: prints its address, and may kill itself at a step of a submission.

python one_nimbus.py CONF.json [STEP]
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from storm_on_spark.cluster.daemons.nimbus import Nimbus


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(threadName)s %(message)s")
    conf = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    fatal = sys.argv[2] if len(sys.argv) > 2 else None

    def on_step(step: str, topology_id: str) -> None:
        logging.info("step %s of %s", step, topology_id)
        if step == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: ended.set())
    with Nimbus(conf, port=0, on_step=on_step) as nimbus:
        print(nimbus.address, flush=True)
        ended.wait()


if __name__ == "__main__":
    main()
