"""Operations on several streams: what `merge`, `join` and `multi_reduce` of a topology do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.text.wording import kind_of, quoted
from storm_on_spark.streams.building.functions import caller
from storm_on_spark.streams.operations.values import Union
from storm_on_spark.trident.building.draft import BatchDraft, Names, names_of, positions
from storm_on_spark.trident.building.stream import GroupedStream, Stream
from storm_on_spark.trident.operations.functions import MultiReducer
from storm_on_spark.trident.operations.reducing import Input, JoinReducer, MultiReduce


class JoinType(Enum):
    """Whether a stream of a join may have no tuple for a group."""

    INNER = "inner"
    OUTER = "outer"

    @staticmethod
    def mixed(*types: JoinType) -> list[JoinType]:
        """Returns the type of each stream, for a join of streams of different types."""
        return list(types)


class JoinOutFieldsMode(Enum):
    """What the results of a join consist of."""

    COMPACT = "the fields that streams are joined by, once, then the other fields of each stream"
    PRESERVE = "all fields of each stream, in their order"


def merged(draft: BatchDraft, streams: Sequence[Any], fields: Names | None) -> Stream:
    """Returns the stream of the tuples of several streams."""
    _check(draft, streams, "merge")
    names = streams[0]._fields if fields is None else names_of(fields)
    for stream in streams:
        if len(stream._fields) != len(names):
            raise InvalidTopologyError(
                f"merge ({caller()}): streams have the fields {quoted(names)} and {quoted(stream._fields)}; make them "
                "equally many with project or each"
            )
    label = _label(streams)
    link = draft.operation(Union(len(streams)), [stream._link for stream in streams], names, label)
    return Stream(draft, link, names, label)


def reduced(
    draft: BatchDraft,
    inputs: Sequence[Names] | None,
    streams: Sequence[Any],
    reducer: Any,
    fields: Names,
    with_keys: bool = True,
) -> Stream:
    """Returns the stream of the results of a reducer of several streams, or of groups of several streams."""
    where = f"multi_reduce ({caller()})"
    grouped = bool(streams) and all(isinstance(stream, GroupedStream) for stream in streams)
    plain = [stream.to_stream() if isinstance(stream, GroupedStream) else stream for stream in streams]
    _check(draft, plain, "multi_reduce")
    if not isinstance(reducer, MultiReducer):
        raise InvalidTopologyError(f"{where} takes a MultiReducer, not {kind_of(reducer)}")
    if not grouped and any(isinstance(stream, GroupedStream) for stream in streams):
        raise InvalidTopologyError(f"{where}: either all streams are grouped, or none")
    chosen = [stream._fields for stream in plain] if inputs is None else [names_of(names) for names in inputs]
    if len(chosen) != len(streams):
        raise InvalidTopologyError(f"{where}: {len(streams)} streams, but inputs of {len(chosen)}")
    keys = [stream._keys if grouped else () for stream in streams]
    if len({len(found) for found in keys}) > 1:
        raise InvalidTopologyError(f"{where}: streams are grouped by different numbers of fields")
    parts = tuple(
        Input(stream._fields, positions(stream._fields, names, "multi_reduce"), positions(stream._fields, key, where))
        for stream, names, key in zip(plain, chosen, keys, strict=True)
    )
    outputs = names_of(fields)
    made = (*keys[0], *outputs) if with_keys else outputs
    moved = [stream.partition_by(key) if grouped else stream for stream, key in zip(plain, keys, strict=True)]
    processor = MultiReduce(reducer, parts, len(outputs), with_keys)
    label = _label(moved)
    return Stream(draft, draft.operation(processor, [stream._link for stream in moved], made, label), made, label)


def joined(
    draft: BatchDraft,
    streams: Sequence[Any],
    by: Sequence[Names],
    fields: Names,
    types: JoinType | Iterable[JoinType],
    mode: JoinOutFieldsMode,
) -> Stream:
    """Returns the stream of the combinations of tuples with equal values of some fields, within each batch."""
    where = f"join ({caller()})"
    _check(draft, streams, "join")
    kinds = [types] * len(streams) if isinstance(types, JoinType) else list(types)
    keys = [names_of(names) for names in by]
    if len(kinds) != len(streams) or len(keys) != len(streams):
        raise InvalidTopologyError(f"{where}: {len(streams)} streams need as many fields to join by, and as many types")
    compact = mode is JoinOutFieldsMode.COMPACT
    inputs = [
        tuple(name for name in stream._fields if not compact or name not in key)
        for stream, key in zip(streams, keys, strict=True)
    ]
    outputs = names_of(fields)
    widths = tuple(map(len, inputs))
    needed = sum(widths) + (len(keys[0]) if compact else 0)
    if len(outputs) != needed:
        raise InvalidTopologyError(f"{where}: the results have {needed} values, but {len(outputs)} fields are named")
    reducer = JoinReducer(widths, tuple(kind is JoinType.OUTER for kind in kinds))
    grouped = [stream.group_by(key) for stream, key in zip(streams, keys, strict=True)]
    own = outputs[len(keys[0]) :] if compact else outputs
    made = reduced(draft, inputs, grouped, reducer, own, compact)
    return Stream(draft, draft.renamed(made._link, outputs), outputs, made._label)


def _label(streams: Sequence[Stream]) -> str:
    """Returns what the user calls operations on several streams: the names of all of them."""
    return "-".join(dict.fromkeys(stream._label for stream in streams if stream._label))


def _check(draft: BatchDraft, streams: Sequence[Any], what: str) -> None:
    for stream in streams:
        if not isinstance(stream, Stream):
            raise InvalidTopologyError(f"{what} ({caller()}) takes streams, not {kind_of(stream)}")
        if stream._draft is not draft:
            raise InvalidTopologyError(f"{what} ({caller()}): a stream is of another TridentTopology")
    if not streams:
        raise InvalidTopologyError(f"{what} ({caller()}) takes at least one stream")
