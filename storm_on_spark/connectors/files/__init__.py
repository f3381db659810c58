"""Files: a bolt that writes tuples to a folder, and a spout that reads a folder's files."""

from __future__ import annotations

from storm_on_spark.connectors.files.bolt import FileBolt
from storm_on_spark.connectors.files.spout import FileSpout

__all__ = ["FileBolt", "FileSpout"]
