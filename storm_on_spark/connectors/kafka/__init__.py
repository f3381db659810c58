"""Kafka: topics as spouts."""

from __future__ import annotations
