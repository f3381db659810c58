"""Answers of REST interfaces: views of a model, each of which selects fields and may rename them."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

SomeView = TypeVar("SomeView", bound="View")


class View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of the answers.

    Example:
        >>> from storm_on_spark.api.info import ErrorInfo
        >>> class TaskError(View, frozen=True, kw_only=True):
        ...     task: int
        ...     error_text: str
        >>> error = ErrorInfo("count", 4, "no such word", 7.0)
        >>> msgspec.json.encode(TaskError.of(error, error_text=error.message))
        b'{"task":4,"errorText":"no such word"}'
    """

    @classmethod
    def of(cls: type[SomeView], source: object, **fields: Any) -> SomeView:
        """Returns a view with `fields`, and with those attributes of an object that have the names of other fields."""
        same = (name for name in cls.__struct_fields__ if name not in fields and hasattr(source, name))
        return cls(**{name: getattr(source, name) for name in same}, **fields)
