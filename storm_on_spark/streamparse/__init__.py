"""Topologies and components that were written for streamparse and pystorm, in process and unchanged.

`storm-spark run` needs none of these functions; tests and notebooks do:

- `install` lets `import streamparse` and `import pystorm` work where these are not installed;
- `build` makes a topology of a class of `streamparse.Topology`;
- `adapt` makes a spout or bolt of a component's class, which the testers of `storm_on_spark.testing` take.
"""

from __future__ import annotations

from storm_on_spark.streamparse.build import adapt, build
from storm_on_spark.streamparse.finder import install

__all__ = ["adapt", "build", "install"]
