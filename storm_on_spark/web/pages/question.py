"""What a page is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from storm_on_spark.web.model import Site, Subjects
from storm_on_spark.web.rates import Rates

S = TypeVar("S", bound=Subjects)


@dataclass(frozen=True)
class Asked(Generic[S]):
    """A request for a page of a kind of site."""

    site: S
    rates: Rates
    path: Mapping[str, str]
    """The parts of its path that differ."""
    query: Mapping[str, str]


Question = Asked[Site]
"""A request for a page about topologies."""
