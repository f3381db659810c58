"""Flux: topologies written as YAML files."""

from __future__ import annotations

from storm_on_spark.flux.errors import FluxError
from storm_on_spark.flux.reading import Substitution
from storm_on_spark.flux.target import load_file, substituting

__all__ = ["FluxError", "Substitution", "load_file", "substituting"]
