"""What a change of log levels comes to, in time."""

from __future__ import annotations

import pytest

from storm_on_spark.cluster.errors import StormError
from storm_on_spark.cluster.log_config import MOST_LOGGERS, changed, effective_levels, log_level, shown_levels
from storm_on_spark.cluster.records import LogConfig
from storm_on_spark.cluster.rest.pages.log_config import LogConfigPage, NamedLevel, changes_of, log_config_page

NONE = LogConfig(topology_id="t", levels={})


def test_a_level_counts_for_its_time_and_then_the_former_or_the_reset_level_does() -> None:
    config = changed(
        NONE,
        {
            "a": log_level("a", "debug", 10, now=100.0),
            "b": log_level("b", "TRACE", 10, "WARN", now=100.0),
            "c": log_level("c", "OFF", now=100.0),
        },
        100.0,
    )
    assert effective_levels(config, 109.9) == {"a": "DEBUG", "b": "TRACE", "c": "OFF"}
    assert effective_levels(config, 110.0) == {"b": "WARN", "c": "OFF"}
    assert set(shown_levels(config, 110.0)) == {"b", "c"}
    assert set(changed(config, {"b": None}, 120.0).levels) == {"c"}


@pytest.mark.parametrize(
    ("logger", "level", "secs"),
    [
        ("", "INFO", 0),
        ("a\n", "INFO", 0),
        ("x" * 201, "INFO", 0),
        ("a", "LOUD", 0),
        ("a", "INFO", -1),
        ("a", "INFO", 1e9),
    ],
)
def test_what_makes_no_sense_is_refused(logger: str, level: str, secs: float) -> None:
    with pytest.raises(StormError):
        log_level(logger, level, secs, now=0.0)


def test_loggers_are_limited() -> None:
    many = {f"l{n}": log_level(f"l{n}", "INFO", now=0.0) for n in range(MOST_LOGGERS + 1)}
    with pytest.raises(StormError, match="at most"):
        changed(NONE, many, 0.0)
    with pytest.raises(StormError):
        changes_of(None, 0.0)
    with pytest.raises(StormError):
        changes_of(LogConfigPage(named_logger_levels={}), 0.0)


def test_rest_has_storm_uis_names() -> None:
    body = LogConfigPage(
        named_logger_levels={"a": NamedLevel(target_level="INFO", timeout=5), "b": NamedLevel(target_level="")}
    )
    changes = changes_of(body, 10.0)
    assert changes["b"] is None
    page = log_config_page({name: level for name, level in changes.items() if level is not None})
    assert page.named_logger_levels == {
        "a": NamedLevel(target_level="INFO", reset_level=None, timeout=5, timeout_epoch=15_000)
    }
