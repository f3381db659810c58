"""Spouts that read Kafka's topics: by Spark's own source, or in plain Python."""

from __future__ import annotations
