"""A task's context as Storm's multilang protocol has it: a dict."""

from __future__ import annotations

from typing import Any

from storm_on_spark.api.task.context import TopologyContext


def storm_context(context: TopologyContext) -> dict[str, Any]:
    """Returns a task's context under the keys of Storm's protocol for other languages.

    Task ids are strings where they are keys, as in JSON.
    """
    streams = context.this_streams()
    sources: dict[str, dict[str, Any]] = {}
    fields: dict[str, dict[str, list[str]]] = {}
    for source, grouping in context.this_sources().items():
        sources.setdefault(source.component, {})[source.stream] = grouping.to_storm()
        names = context.component_output_fields(source.component, source.stream)
        fields.setdefault(source.component, {})[source.stream] = list(names)
    return {
        "task->component": {str(task): component for task, component in context.task_to_component.items()},
        "taskid": context.this_task_id,
        "componentid": context.this_component_id,
        "streams": streams,
        "stream->outputfields": {stream: list(context.this_output_fields(stream)) for stream in streams},
        "stream->target->grouping": {
            stream: {target: grouping.to_storm() for target, grouping in targets.items()}
            for stream, targets in context.this_targets().items()
        },
        "source->stream->grouping": sources,
        "source->stream->fields": fields,
    }
