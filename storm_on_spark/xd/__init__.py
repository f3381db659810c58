"""Streams by description: text becomes definitions of streams, and these become topologies.

`dsl` reads the text. `fused.py` makes one topology of streams. When they are deployed, `admin` places their
modules (`placement.py`), `container` runs them, and `bus` carries messages between containers. `modules` are the
sources, processors and sinks themselves.
"""

from __future__ import annotations

from storm_on_spark.xd.fused import load_file

__all__ = ["load_file"]
