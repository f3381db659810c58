from __future__ import annotations

import pytest
from pyspark import SparkContext

from storm_on_spark.spark.session.settings.expected import active_context, expected_master, expected_parallelism


@pytest.mark.parametrize("attributes", [{"_jsc": None, "_accumulatorServer": None}, {}])
def test_a_context_whose_stop_was_interrupted_is_none(
    attributes: dict[str, None], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = SparkContext.__new__(SparkContext)
    vars(context).update(attributes)
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)

    assert expected_parallelism("local[3]") == 3
    assert expected_master("local[3]") == "local[3]"
    assert active_context() is None
