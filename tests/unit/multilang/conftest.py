"""What is a program for the tests, not a test."""

from __future__ import annotations

collect_ignore = ["components"]
