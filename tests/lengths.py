"""How long tests are: the short and the long form of property tests, and how long a test waits for what must come."""

from __future__ import annotations

import hypothesis

PATIENCE_SECS = 240.0
"""A test that waits so long has failed. Most wait for milliseconds; a busy machine makes minutes of them."""

# How long an example takes says something about the machine, not about the code.
hypothesis.settings.register_profile("short", max_examples=25, deadline=None)
hypothesis.settings.register_profile("long", max_examples=100, deadline=None)
hypothesis.settings.load_profile("short")  # the option --hypothesis-profile comes later


def examples(long: int) -> int:
    """Returns the number of examples of a test whose long form has `long`."""
    return max(1, long * hypothesis.settings().max_examples // 100)
