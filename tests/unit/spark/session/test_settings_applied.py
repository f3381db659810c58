"""Settings that a query starts with, and what is left of them."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from storm_on_spark.spark.session.settings.required import settings_applied

KEY = "spark.sql.shuffle.partitions"


class _Conf(dict[str, str]):
    """A session's settings, of which every access takes a moment."""

    def get(self, key: str, default: Any = None) -> Any:
        time.sleep(0.0005)
        return super().get(key, default)

    def set(self, key: str, value: str) -> None:
        time.sleep(0.0005)
        self[key] = value

    def unset(self, key: str) -> None:
        self.pop(key, None)


def session(**conf: str) -> Any:
    context = SimpleNamespace(getConf=lambda: SimpleNamespace(get=lambda key: None))
    return SimpleNamespace(conf=_Conf(conf), sparkContext=context)


def test_what_the_user_set_is_put_back_also_after_an_error() -> None:
    spark = session(**{KEY: "7", "spark.sql.adaptive.enabled": "true"})
    before = dict(spark.conf)

    def start() -> None:
        with settings_applied(spark, {KEY: "2"}):
            assert spark.conf[KEY] == "2"
            assert spark.conf["spark.sql.adaptive.enabled"] == "false"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        start()
    assert spark.conf == before


def test_no_java_code_is_generated_for_a_query_unless_the_user_says_so() -> None:
    theirs = "spark.sql.codegen.wholeStage"
    spark = session(**{theirs: "true"})
    with settings_applied(spark):
        assert spark.conf[theirs] == "true"
        assert spark.conf["spark.sql.codegen.factoryMode"] == "NO_CODEGEN"
    assert spark.conf == {theirs: "true"}


def test_topologies_that_start_in_several_threads_get_each_its_own_settings() -> None:
    spark = session(**{KEY: "200"})
    together = threading.Barrier(4)

    def start(partitions: int) -> list[str]:
        together.wait()
        seen = []
        for _ in range(5):
            with settings_applied(spark, {KEY: str(partitions)}):
                time.sleep(0.001)
                seen.append(spark.conf[KEY])
        return seen

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(start, range(1, 5))) == [[str(n)] * 5 for n in range(1, 5)]
    assert spark.conf == {KEY: "200"}
