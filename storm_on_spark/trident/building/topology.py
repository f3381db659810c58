"""The builder of topologies of batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from storm_on_spark.api.streams.grouping import AllGrouping
from storm_on_spark.api.topology import Topology
from storm_on_spark.drpc.spout import DRPCSpout, HasInvocations
from storm_on_spark.streams.building.functions import caller
from storm_on_spark.streams.graph.model import Link, Operation, Port
from storm_on_spark.trident.building.draft import BatchDraft, Names
from storm_on_spark.trident.building.joining import JoinOutFieldsMode, JoinType, joined, merged, reduced
from storm_on_spark.trident.building.stream import GroupedStream, Stream, TridentState
from storm_on_spark.trident.graph.batches import coordinators
from storm_on_spark.trident.lowering.lower import lower
from storm_on_spark.trident.operations.answering import ReturnResultsReducer
from storm_on_spark.trident.operations.emitting import EmitBatch
from storm_on_spark.trident.operations.functions import MultiReducer
from storm_on_spark.trident.spouts.interfaces import ITridentSpout
from storm_on_spark.trident.spouts.kinds import as_trident
from storm_on_spark.trident.spouts.rich import RichSpoutInBatches


class TridentTopology:
    """Builds a topology of operations on batches; Storm's `TridentTopology`.

    Example:
        >>> from storm_on_spark.trident import Count, FixedBatchSpout
        >>> topology = TridentTopology()
        >>> lines = topology.new_stream("lines", FixedBatchSpout("line", 2, [["to be"], ["or not to be"]]))
        >>> words = lines.flat_map(lambda tup: tup["line"].split(), "word")
        >>> counts = words.group_by("word").aggregate(Count(), "count")
        >>> topology.build()["b-0-spout-lines"].component.title
        'emit → flat_map → aggregate'
    """

    def __init__(self) -> None:
        self._draft = BatchDraft()
        self._requests: list[Stream] = []

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

    def new_drpc_stream(self, function: str, drpc: HasInvocations | None = None) -> Stream:
        """Returns the stream of the requests of a DRPC function; its field is `args`, the text that the caller gave.

        Each request is a batch. What the last operation that is added to the stream emits is returned to the caller, as
        a JSON list with a list of the values of each tuple.

        Args:
            function: the function's name.
            drpc: a DRPC server of this process, such as `LocalDRPC`; None for the servers of `drpc.servers`.
        """
        source = self._draft.source()
        self._draft.requests.add(source.port.node)
        requests = self._stream(function, RichSpoutInBatches(DRPCSpout(function, drpc), single=True), source)
        self._requests.append(requests)
        return requests.project("args")

    def new_static_state(self, factory: Any) -> TridentState:
        """Returns a state to which the topology writes nothing; `state_query` asks it."""
        return TridentState(self._draft, factory, None)

    def merge(self, *streams: Stream, fields: Names | None = None) -> Stream:
        """Returns the stream of the tuples of several ones. They have as many fields; the names are the first one's.

        Args:
            streams: the streams.
            fields: other names for the fields.

        Raises:
            InvalidTopologyError: the streams don't fit together.
        """
        return merged(self._draft, streams, fields)

    def join(
        self,
        streams: Sequence[Stream],
        by: Sequence[Names],
        fields: Names,
        types: JoinType | Iterable[JoinType] = JoinType.INNER,
        mode: JoinOutFieldsMode = JoinOutFieldsMode.COMPACT,
    ) -> Stream:
        """Returns the stream of the combinations of tuples with equal values of some fields, within each batch.

        Args:
            streams: the streams.
            by: for each stream the fields that it is joined by.
            fields: of the results; what these consist of is said by `mode`.
            types: whether streams may have no tuple for a value: one type for all, or one for each.
            mode: whether the results have the fields that streams are joined by once, or for each stream.

        Raises:
            InvalidTopologyError: arguments don't fit together.
        """
        return joined(self._draft, streams, by, fields, types, mode)

    def multi_reduce(
        self,
        streams: Sequence[Stream] | Sequence[GroupedStream],
        reducer: MultiReducer,
        fields: Names,
        inputs: Sequence[Names] | None = None,
    ) -> Stream:
        """Returns the stream of what a reducer makes of the tuples of several streams, within each batch.

        Args:
            streams: the streams; if they are grouped, the reducer is called for each group.
            reducer: a `MultiReducer`.
            fields: those that it emits.
            inputs: for each stream the fields that the reducer gets; None for all.

        Raises:
            InvalidTopologyError: arguments don't fit together.
        """
        return reduced(self._draft, inputs, streams, reducer, fields)

    def build(self) -> Topology:
        """Returns the topology.

        Raises:
            InvalidTopologyError: parts of the program don't fit together.
            ConfigError: a component's configuration is invalid.
        """
        draft = self._draft.copy()
        of = coordinators(draft.graph)
        for requests in self._requests:
            source = of[requests._link.port.node]
            # As in Storm: what was added last to the stream of requests is the result.
            last = max(number for number in draft.graph.nodes if of[number] == source)
            node = draft.graph.nodes[last]
            assert isinstance(node, Operation)
            results = Stream(draft, Link(Port(last)), node.fields or ())
            callers = Stream(draft, requests._link, requests._fields).project("return-info").batch_global()
            reduced(draft, None, [callers, results.batch_global()], ReturnResultsReducer(), ())
        return lower(draft.graph, draft.hints, draft.called, draft.requests)

    def _stream(self, tx_id: str, spout: ITridentSpout, source: Link) -> Stream:
        fields = tuple(spout.get_output_fields())
        processor = EmitBatch(spout, tx_id, self._draft.next_id, len(fields))
        begins = replace(source, grouping=AllGrouping())
        return Stream(self._draft, self._draft.operation(processor, [begins], fields), fields)

    def _repr_html_(self) -> str:
        return self._draft.picture()
