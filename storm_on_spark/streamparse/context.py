"""The context that Storm gives to a component over its pipe, as a dict."""

from __future__ import annotations

from typing import Any, Final

from storm_on_spark.api.streams.grouping import (
    AllGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    ShuffleGrouping,
)
from storm_on_spark.api.task.context import TopologyContext

_TYPES: Final[dict[type[Grouping], str]] = {
    AllGrouping: "ALL",
    DirectGrouping: "DIRECT",
    LocalOrShuffleGrouping: "LOCAL_OR_SHUFFLE",
    NoneGrouping: "NONE",
    ShuffleGrouping: "SHUFFLE",
}


def storm_context(context: TopologyContext) -> dict[str, Any]:
    """Returns a task's context under the keys of Storm's protocol for other languages.

    Task ids are strings where they are keys, as in JSON.
    """
    streams = context.this_streams()
    sources: dict[str, dict[str, Any]] = {}
    fields: dict[str, dict[str, list[str]]] = {}
    for source, grouping in context.this_sources().items():
        sources.setdefault(source.component, {})[source.stream] = _grouping(grouping)
        names = context.component_output_fields(source.component, source.stream)
        fields.setdefault(source.component, {})[source.stream] = list(names)
    return {
        "task->component": {str(task): component for task, component in context.task_to_component.items()},
        "taskid": context.this_task_id,
        "componentid": context.this_component_id,
        "streams": streams,
        "stream->outputfields": {stream: list(context.this_output_fields(stream)) for stream in streams},
        "stream->target->grouping": {
            stream: {target: _grouping(grouping) for target, grouping in targets.items()}
            for stream, targets in context.this_targets().items()
        },
        "source->stream->grouping": sources,
        "source->stream->fields": fields,
    }


def _grouping(grouping: Grouping) -> dict[str, Any]:
    if isinstance(grouping, FieldsGrouping):
        return {"type": "FIELDS", "fields": list(grouping.fields)}
    if isinstance(grouping, GlobalGrouping):
        return {"type": "FIELDS", "fields": []}
    return {"type": _TYPES.get(type(grouping), "CUSTOM_OBJECT")}
