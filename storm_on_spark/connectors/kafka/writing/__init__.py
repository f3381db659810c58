"""Bolts that write tuples to Kafka's topics, and their shared configuration."""

from __future__ import annotations
