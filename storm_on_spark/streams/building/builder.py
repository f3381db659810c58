"""The builder of stream programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from storm_on_spark.api.component import BaseRichSpout, BatchSpout, NativeSpout
from storm_on_spark.api.topology import Topology
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.streams.building.draft import Draft
from storm_on_spark.streams.building.functions import caller, checked_parallelism
from storm_on_spark.streams.building.mappers import PairValueMapper
from storm_on_spark.streams.building.stream import PairStream, Stream
from storm_on_spark.streams.graph.model import Source
from storm_on_spark.streams.lowering.lower import lower

T = TypeVar("T")
Spout = BaseRichSpout | BatchSpout | NativeSpout


class StreamBuilder:
    """Builds a topology from operations on streams; Storm's `StreamBuilder`.

    Example:
        >>> from storm_on_spark.testing import ListSpout
        >>> builder = StreamBuilder()
        >>> lines = builder.new_stream(ListSpout(["to be", "or not to be"]), lambda tup: tup[0])
        >>> words = lines.flat_map(str.split).map_to_pair(lambda word: (word, 1))
        >>> words.count_by_key().print()
        >>> print(builder.build())
        spout spout1 (ListSpout, x1) -> (value)
        bolt bolt1 (map → flat_map → map_to_pair → count_by_key → print, x1) <- spout1 shuffle
    """

    def __init__(self) -> None:
        self._draft = Draft()

    @overload
    def new_stream(
        self, spout: Spout, mapper: PairValueMapper, parallelism: int = 1, *, name: str | None = None
    ) -> PairStream[Any, Any]: ...

    @overload
    def new_stream(
        self, spout: Spout, mapper: Callable[[Tuple], T], parallelism: int = 1, *, name: str | None = None
    ) -> Stream[T]: ...

    @overload
    def new_stream(
        self, spout: Spout, mapper: int | None = None, parallelism: int = 1, *, name: str | None = None
    ) -> Stream[Tuple]: ...

    def new_stream(
        self,
        spout: Spout,
        mapper: Callable[[Tuple], Any] | int | None = None,
        parallelism: int = 1,
        *,
        name: str | None = None,
    ) -> Stream[Any]:
        """Returns the stream of a spout's tuples, or of values made from them.

        Args:
            spout: the spout; its stream `default` is read.
            mapper: a function from a tuple to a value. With a `PairValueMapper` it becomes a `PairStream`. None for the
                tuples themselves.
            parallelism: the number of tasks of the spout, and of operations on the stream until something changes it.
            name: the spout's component id, instead of `spout1` and so on.

        Raises:
            InvalidTopologyError: an argument is invalid.
        """
        mapper, parallelism = (None, mapper) if isinstance(mapper, int) else (mapper, parallelism)
        where = caller()
        checked_parallelism(parallelism, f"new_stream ({where})")
        source = Source(self._draft.next_id, spout, parallelism, where, name)
        tuples: Stream[Tuple] = Stream(self._draft, self._draft.add(source), parallelism)
        if mapper is None:
            return tuples
        return tuples.map_to_pair(mapper) if isinstance(mapper, PairValueMapper) else tuples.map(mapper)

    def build(self) -> Topology:
        """Returns the topology.

        Raises:
            InvalidTopologyError: parts of the program don't fit together.
            ConfigError: a component's configuration is invalid.
        """
        return lower(self._draft.graph)

    def _repr_html_(self) -> str:
        return self._draft.picture()
