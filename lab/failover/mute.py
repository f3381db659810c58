"""A driver that never reports anything: `python -m lab.failover.mute`, as a supervisor starts it."""

from __future__ import annotations

import time

from storm_on_spark.cluster.driver.begin import begin

if __name__ == "__main__":
    begin()
    while True:
        time.sleep(60)
