"""A pattern of topics comes from whoever submits a topology: Nimbus matches only what can't stop it."""

from __future__ import annotations

import pytest

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.cluster.rest.pages.lag import compiled_pattern


@pytest.mark.parametrize(
    ("pattern", "topic", "read"),
    [
        (r"orders-.*", "orders-eu", True),
        (r"^orders\.\w+$", "orders.eu", True),
        (r"orders_(eu|us)_v[0-9]+", "orders_us_v12", True),
        (r"orders_(eu|us)", "orders_cn", False),
        (r"(a|b)?c", "ac", None),
        (r"(a+)+b", "a" * 40, None),
        (r"(a|a)*b", "a" * 40, None),
        (r"(a*){9}b", "a" * 40, None),
        ("a?" * 30 + "a" * 30, "a" * 30, None),
        ("(a|a)" * 30 + "b", "a" * 30, None),
        (".*" * 10 + "b", "a" * 249, None),
        ("a" * 501, "a", None),
        (r"(a)\1", "aa", None),
    ],
)
def test_a_simple_pattern_is_matched_and_another_is_refused(pattern: str, topic: str, read: bool | None) -> None:
    if read is not None:
        assert bool(compiled_pattern(pattern).fullmatch(topic)) is read
        return
    with pytest.raises(ConfigError, match=r"simple patterns only, not .*: ask by storm-spark lag FILE"):
        compiled_pattern(pattern)
