"""Bolts that write tuples to Kafka's topics, and what both are told."""

from __future__ import annotations
