"""Poison: a tuple or record batch whose execution raises."""

from __future__ import annotations

from typing import Any

from storm_on_spark.api.errors import ComponentError
from storm_on_spark.api.text.traces import raised_at, summary
from storm_on_spark.runtime.reports.shown_values import input_text

_MOST_TRACED = 20
"""Different errors of an execution that come with traceback and input: these take longer than most tuples."""


class PoisonError(Exception):
    """`item` can't be executed: the tuple at `index` of the input, or a batch of the `count` tuples from there on."""

    def __init__(self, index: int, cause: BaseException, item: Any, count: int = 1) -> None:
        super().__init__(index)
        self.index = index
        self.cause = cause
        self.item = item
        self.count = count


class PoisonReports:
    """Makes the errors that an execution reports of its poison. The first of equal ones has traceback and input.

    Args:
        component: whose execution it is.
        task: of the component.
    """

    def __init__(self, component: str, task: int) -> None:
        self._component, self._task = component, task
        #: Text and place of those with traceback.
        self._traced: set[object] = set()

    def error(self, poison: PoisonError) -> ComponentError:
        """Returns the error of one tuple or batch."""
        cause = poison.cause
        what = summary(cause), raised_at(cause)
        new = what not in self._traced and len(self._traced) < _MOST_TRACED
        error = cause if isinstance(cause, ComponentError) else None
        error = error or ComponentError.of(self._component, self._task, "execute", cause, traced=new)
        if new:
            self._traced.add(what)
            error.input = error.input or input_text(poison.item)
        return error
