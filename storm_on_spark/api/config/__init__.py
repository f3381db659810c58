"""Configuration: Storm's keys with their types, defaults and meaning, and what checks and merges them."""

from __future__ import annotations

from storm_on_spark.api.config.config import (
    KNOWN_PREFIXES,
    Config,
    default_of,
    effective_conf,
    problems_of,
    validate_conf,
)
from storm_on_spark.api.config.effects import without_effect, without_effect_sentence
from storm_on_spark.api.config.table import FAMILIES, KEYS, PROFILES, family_key
from storm_on_spark.api.config.types import ConfigKey, ConfigType, Level

__all__ = [
    "FAMILIES",
    "KEYS",
    "KNOWN_PREFIXES",
    "PROFILES",
    "Config",
    "ConfigKey",
    "ConfigType",
    "Level",
    "default_of",
    "effective_conf",
    "family_key",
    "problems_of",
    "validate_conf",
    "without_effect",
    "without_effect_sentence",
]
