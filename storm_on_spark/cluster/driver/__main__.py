"""`python -m storm_on_spark.cluster.driver FOLDER LOCK`: started by a supervisor."""

from __future__ import annotations

from storm_on_spark.cluster.driver.begin import begin

if __name__ == "__main__":
    folder, spec, process = begin()

    from storm_on_spark.cluster.driver.main import Driver

    Driver(folder, spec, process).run()
