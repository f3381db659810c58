"""The load of `make faults` as a topology that is submitted.

Configuration: `failover.ledger`, the folder of its ledger; `failover.messages` and `failover.seconds` of its `Load`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from faults.topology import Load
from faults.topology import build as build_load
from storm_on_spark import Topology


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    load = Load(int(conf["failover.messages"]), float(conf["failover.seconds"]))
    return build_load(load, Path(conf["failover.ledger"]))
