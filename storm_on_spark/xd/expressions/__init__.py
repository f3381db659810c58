"""Expressions of modules: a small safe language over the payload and the headers of a message."""

from __future__ import annotations

from storm_on_spark.xd.expressions.errors import ExpressionError
from storm_on_spark.xd.expressions.evaluating import Expression, parse_expression

__all__ = ["Expression", "ExpressionError", "parse_expression"]
