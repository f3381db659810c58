"""The resources of counters, which read the files that the sinks of all containers write."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

from storm_on_spark.cluster.errors import NotFoundError, RecordError
from storm_on_spark.xd.admin.rest import schemas
from storm_on_spark.xd.admin.rest.calls import Call, Handler
from storm_on_spark.xd.modules.counters import Counter, Kind, delete_counter, list_counters, read_counter
from storm_on_spark.xd.modules.counters.values import CounterError
from storm_on_spark.xd.modules.declaration import home


class CounterHandlers:
    """The handlers; they block.

    Args:
        folder: of all counters, shared by containers and admins; None for the one in `home()`.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = home() / "counters" if folder is None else folder

    def handlers(self) -> dict[str, Handler]:
        """Returns name of a resource -> its function."""
        views: dict[Kind, Callable[[Call, Counter], Any]] = {
            "counter": _counter,
            "field-value-counter": _field_values,
            "aggregate-counter": _aggregate,
        }
        found: dict[str, Handler] = {}
        for kind, view in views.items():
            one = kind.replace("-", "_")
            found[f"list_{one}s"] = partial(self._list, kind)
            found[f"get_{one}"] = partial(self._get, kind, view)
            found[f"delete_{one}"] = partial(self._delete, kind)
        return found

    def _list(self, kind: Kind, call: Call) -> schemas.PageOf[schemas.CounterName]:
        return call.page(schemas.CounterName(name=name) for name in list_counters(self._folder, kind))

    def _get(self, kind: Kind, view: Callable[[Call, Counter], Any], call: Call) -> Any:
        name = self._there(kind, call)
        try:
            return view(call, read_counter(self._folder, kind, name))
        except CounterError as error:
            raise NotFoundError(f"The {kind} {name!r} can't be read: {error}") from error

    def _delete(self, kind: Kind, call: Call) -> None:
        try:
            delete_counter(self._folder, kind, self._there(kind, call))
        except CounterError as error:
            raise NotFoundError(str(error)) from error

    def _there(self, kind: Kind, call: Call) -> str:
        name = call.path["name"]
        if name not in list_counters(self._folder, kind):
            raise NotFoundError(f"There is no {kind} named {name!r:.100}")
        return name


def _counter(call: Call, found: Counter) -> schemas.CounterView:
    return schemas.CounterView(name=found.name, value=int(found.values.get("value", 0)))


def _field_values(call: Call, found: Counter) -> schemas.FieldValueCounterView:
    return schemas.FieldValueCounterView(name=found.name, field_value_counts=found.values)


def _aggregate(call: Call, found: Counter) -> schemas.AggregateCounterView:
    resolution = call.query.get("resolution", "hour")
    if resolution not in get_args(schemas.Resolution):
        some = ", ".join(get_args(schemas.Resolution))
        raise RecordError(f"Expected one of {some} as resolution, got {resolution!r:.100}")
    counts = found.values.get(resolution, {})
    return schemas.AggregateCounterView(name=found.name, resolution=cast(schemas.Resolution, resolution), counts=counts)
