"""Checks of a definition before it is stored: its modules exist, and their options are valid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from storm_on_spark.xd.dsl import Channel, Code, DslError, Job, Stream, Tap, parse_job, parse_stream
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.parts import parts_of
from storm_on_spark.xd.steps import check_steps

Others = Callable[[], Mapping[str, str]]

_UNNAMED: Final = "stream"


def check_stream(name: str | None, definition: str, registry: LocalRegistry, others: Others) -> Stream:
    """Returns the parsed definition if a stream can be created from it.

    Args:
        name: the stream's; None if it has none yet.
        definition: the text.
        registry: the modules.
        others: returns name -> definition of the existing streams; called if the definition has a tap.

    Raises:
        DslError: it can't, with a code and a position.

    Example:
        >>> streams = {"ticktock": "time | log"}
        >>> check_stream("slow", "tap:stream:ticktock.time > log", LocalRegistry(), lambda: streams).source
        Tap(kind='stream', name='ticktock', label='time', index=None)
    """
    stream = parse_stream(definition, name)
    if isinstance(stream.source, Tap):
        _check_tap(stream.source, definition, others())
    for channel in (stream.source, stream.sink):
        if channel is not None and ":" in channel.name:
            raise _scoped(channel, definition)
    if len(stream.modules) == 1 and stream.source is None and stream.sink is None:
        message = "Expected a source and a sink, or a channel in the place of one"
        raise DslError(Code.INCOMPLETE, definition, stream.modules[0].position, message)
    for part in parts_of(stream, definition, registry):
        if part.label.startswith("__"):
            message = "Expected a label that does not begin with '__', as Storm's own components do"
            raise DslError(Code.NAME, definition, part.origin.position, message)
        part.component(stream.name or _UNNAMED, definition)
    return stream


def check_job(name: str | None, definition: str, registry: LocalRegistry) -> Job:
    """Returns the parsed definition if a job can be created from it.

    Args:
        name: the job's; None if it has none yet.
        definition: the text.
        registry: the modules.

    Raises:
        DslError: it can't, with a code and a position.

    Example:
        >>> [step.label for step in check_job("stamps", "a:timestampfile || timestampfile", LocalRegistry()).modules]
        ['a', 'timestampfile']
    """
    job = parse_job(definition, name)
    check_steps(job, definition, registry)
    return job


def _scoped(channel: Channel | Tap, definition: str) -> DslError:
    """Returns the error about a channel such as `queue:job:nightly`, by which Spring XD launches jobs."""
    scope, _, name = channel.name.partition(":")
    message = "Expected the name of a channel without ':'"
    if scope == "job":
        message = f"Expected a channel without ':': streams launch no jobs; let a scheduler run `job launch {name}`"
    return DslError(Code.EXPECTED_CHANNEL, definition, definition.index(f":{channel.name}") + 1, message)


def _check_tap(tap: Tap, definition: str, others: Mapping[str, str]) -> None:
    if tap.kind in ("queue", "topic"):
        return
    at = definition.index(f"{tap.name}", definition.index(":"))
    if tap.kind == "job":
        raise DslError(Code.UNKNOWN_STREAM, definition, at, "Expected a tap on a stream: jobs have none")
    if tap.name not in others:
        known = ", ".join(sorted(others)[:20]) or "none"
        message = f"Expected a stream that has been created, got {tap.name!r:.100}; there are: {known}"
        raise DslError(Code.UNKNOWN_STREAM, definition, at, message)
    labels = [module.label for module in parse_stream(others[tap.name], tap.name).modules]
    if tap.label is not None and (tap.label not in labels or tap.index):
        message = f"Expected a label of stream {tap.name!r:.100}, one of {', '.join(labels)}; got {tap.label!r:.100}"
        raise DslError(Code.UNKNOWN_STREAM, definition, at + len(tap.name) + 1, message)
