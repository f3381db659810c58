"""The project is compiled, never imported by the test run: what it requires isn't installed."""

from __future__ import annotations

collect_ignore = ["project"]
