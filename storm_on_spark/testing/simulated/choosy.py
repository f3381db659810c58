"""A code distributor that fetches only what a test lets it fetch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from storm_on_spark.cluster.code.distributors.local import LocalFileSystemCodeDistributor
from storm_on_spark.cluster.errors import CodeError
from storm_on_spark.cluster.nimbus.accepting.submission import name_of


class ChoosyDistributor(LocalFileSystemCodeDistributor):
    """Fetches a topology if a file in `<storm.local.dir>/may-fetch` has its name."""

    def prepare(self, conf: Mapping[str, Any]) -> None:
        """Remembers the place of the files."""
        super().prepare(conf)
        self._allowed = Path(conf["storm.local.dir"]) / "may-fetch"

    def fetch(self, topology_id: str, metafile: str) -> None:
        """Fetches, or refuses to."""
        if not (self._allowed / name_of(topology_id)).exists():
            raise CodeError(f"the test doesn't let {topology_id} be fetched")
        super().fetch(topology_id, metafile)
