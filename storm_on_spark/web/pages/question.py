"""What a page is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storm_on_spark.web.model import Site
from storm_on_spark.web.rates import Rates


@dataclass(frozen=True)
class Question:
    """A request for a page."""

    site: Site
    rates: Rates
    path: Mapping[str, str]
    """The parts of its path that differ."""
    query: Mapping[str, str]
