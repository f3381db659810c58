"""Which partition a message goes to."""

from __future__ import annotations

import datetime
from collections import OrderedDict
from decimal import Decimal
from typing import Any

import pytest

from storm_on_spark.xd.expressions import ExpressionError
from storm_on_spark.xd.manifest import ModuleManifest, parse_manifest


def manifest(expression: str) -> ModuleManifest:
    return parse_manifest({"module.a.producer.partitionKeyExpression": expression}, ["a"])["a"]


@pytest.mark.parametrize(
    "equal",
    [
        (1, 1.0, True, Decimal(1)),
        ({"x": 1, "y": [2]}, OrderedDict(y=[2.0], x=True)),
        (datetime.timedelta(hours=24), datetime.timedelta(days=1)),
        ("\ud83d", "\ud83d"),
    ],
    ids=lambda equal: type(equal[0]).__name__,
)
def test_equal_keys_have_one_partition_whatever_their_classes(equal: tuple[Any, ...]) -> None:
    (found,) = {manifest("payload.key").partition({"key": key}, {}) for key in equal}
    assert found is not None
    assert 0 <= found < 2**32


def test_a_key_that_there_are_no_partitions_by_is_refused_with_the_expression() -> None:
    with pytest.raises(ExpressionError, match="a value to partition by, but a object has no"):
        manifest("payload").partition(object(), {})
    assert manifest("payload").partition(None, {}) is not None
