"""Connectors: components that read from and write to other systems."""

from __future__ import annotations
