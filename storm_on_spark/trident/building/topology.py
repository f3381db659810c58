"""The builder of topologies of batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.grouping import AllGrouping
from storm_on_spark.api.text.wording import quoted
from storm_on_spark.api.topology import Topology
from storm_on_spark.streams.building.functions import caller
from storm_on_spark.streams.graph.model import Link
from storm_on_spark.streams.operations.values import Union
from storm_on_spark.trident.building.draft import BatchDraft
from storm_on_spark.trident.building.stream import Stream, TridentState
from storm_on_spark.trident.lowering.lower import lower
from storm_on_spark.trident.operations.emitting import EmitBatch
from storm_on_spark.trident.spouts.interfaces import ITridentSpout
from storm_on_spark.trident.spouts.kinds import as_trident


class TridentTopology:
    """Builds a topology of operations on batches; Storm's `TridentTopology`.

    Example:
        >>> from storm_on_spark.trident import Count, FixedBatchSpout
        >>> topology = TridentTopology()
        >>> lines = topology.new_stream("lines", FixedBatchSpout("line", 2, [["to be"], ["or not to be"]]))
        >>> words = lines.flat_map(lambda tup: tup["line"].split(), "word")
        >>> counts = words.group_by("word").aggregate(Count(), "count")
        >>> print(topology.build()["b-0-spout-lines"])
        bolt b-0-spout-lines (emit → flat_map → aggregate, x1) <- $mastercoord-bg0:$batch all, \
$mastercoord-bg0:$success all -> $coord-bg0(id, oldest, count) direct, s3($batch, word, count)
    """

    def __init__(self) -> None:
        self._draft = BatchDraft()

    def new_stream(self, tx_id: str, spout: Any) -> Stream:
        """Returns the stream of a spout's tuples.

        Args:
            tx_id: names the stream; the bolt that emits it is called by it.
            spout: an `IBatchSpout`, an `ITridentSpout`, a partitioned one, or a plain spout, whose tuples are put into
                batches of at most `topology.spout.max.batch.size`.

        Raises:
            InvalidTopologyError: the spout is none of these.
        """
        return self._stream(tx_id, as_trident(spout, f"new_stream ({caller()})"), self._draft.source())

    def new_static_state(self, factory: Any) -> TridentState:
        """Returns a state to which the topology writes nothing; `state_query` asks it."""
        return TridentState(self._draft, factory, None)

    def merge(self, *streams: Stream, fields: Any = None) -> Stream:
        """Returns the stream of the tuples of several ones. They have as many fields; the names are the first one's.

        Args:
            streams: the streams.
            fields: other names for the fields.

        Raises:
            InvalidTopologyError: the streams don't fit together.
        """
        where = f"merge ({caller()})"
        if not streams or any(not isinstance(stream, Stream) for stream in streams):
            raise InvalidTopologyError(f"{where} takes streams")
        names = streams[0]._fields if fields is None else tuple(streams[0].output_fields.of(fields))
        for stream in streams:
            if stream._draft is not self._draft:
                raise InvalidTopologyError(f"{where}: a stream is of another TridentTopology")
            if len(stream._fields) != len(names):
                raise InvalidTopologyError(
                    f"{where}: streams have the fields {quoted(names)} and {quoted(stream._fields)}; make them equally "
                    "many with project or each"
                )
        links = [stream._link for stream in streams]
        return Stream(self._draft, self._draft.operation(Union(len(links)), links, names), names)

    def build(self) -> Topology:
        """Returns the topology.

        Raises:
            InvalidTopologyError: parts of the program don't fit together.
            ConfigError: a component's configuration is invalid.
        """
        draft = self._draft
        return lower(draft.graph, draft.hints, draft.called, draft.requests)

    def _stream(self, tx_id: str, spout: ITridentSpout, source: Link) -> Stream:
        fields = tuple(spout.get_output_fields())
        processor = EmitBatch(spout, tx_id, self._draft.next_id, len(fields))
        begins = replace(source, grouping=AllGrouping())
        return Stream(self._draft, self._draft.operation(processor, [begins], fields), fields)

    def _repr_html_(self) -> str:
        return self._draft.picture()
