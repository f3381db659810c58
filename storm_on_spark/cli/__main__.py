"""`python -m storm_on_spark.cli`: the same as `storm-spark`."""

from __future__ import annotations

from storm_on_spark.cli.entry import main

main()
