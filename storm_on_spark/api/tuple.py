"""The tuple that a bolt executes.

The hottest loop of the runtime creates a `Tuple` for every delivered tuple. A `Delivery` therefore holds once what all
its tuples share (component, stream, task, field names, lineage). A tuple has its values, its position in that delivery,
and whether it has been acked or failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from storm_on_spark.api.streams.constants import SYSTEM_COMPONENT, TICK_STREAM, TIMER_STREAM
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, GlobalStreamId


class Lineage(Protocol):
    """The trees that the tuples of a delivery belong to."""

    @property
    def roots(self) -> Any:
        """For each tuple the root ids it is anchored to: one int (0 = unanchored) or a tuple of ints."""

    @property
    def edges(self) -> Any:
        """For each tuple its 64-bit edge id, an int."""

    @property
    def reported(self) -> bool:
        """Whether the edges have been reported to the ackers; if not, the executing task reports them."""


class KnownLineage(NamedTuple):
    """A lineage whose roots and edges are lists."""

    roots: Sequence[Any]
    edges: Sequence[int]
    reported: bool = False


class Delivery:
    """The shared data of tuples that travelled together.

    Args:
        component: the component that emitted the tuples.
        stream: the stream on which it emitted them.
        task: the task that emitted them.
        fields: the names of the values.
        lineage: the trees that the tuples belong to; `None` when none of them is anchored.
    """

    __slots__ = ("component", "execution", "fields", "lineage", "offset", "positions", "received", "stream", "task")

    def __init__(
        self,
        component: str,
        stream: str,
        task: int,
        fields: Fields,
        lineage: Lineage | None = None,
    ) -> None:
        self.component = component
        self.stream = stream
        self.task = task
        self.fields = fields
        #: The positions of the fields, for `Tuple.__getitem__`.
        self.positions = fields.positions
        self.lineage = lineage
        #: The execution that this delivery belongs to; while it is current, anchors are plain positions.
        self.execution: object = None
        #: Position of the delivery's first tuple among all input of that execution.
        self.offset = 0
        #: When it arrived at the bolt, or was restored there, in seconds since the epoch.
        self.received = 0.0


def _typed(convert: type, what: str) -> tuple[Callable[[Tuple, int], Any], Callable[[Tuple, str], Any]]:
    """Makes Storm's pair of typed accessors (such as `get_string`, `get_string_by_field`) for one type."""

    def check(tup: Tuple, key: str | int) -> Any:
        value = tup[key]
        if value is None or (isinstance(value, convert) and not (convert is int and isinstance(value, bool))):
            return value
        if convert is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        name = key if isinstance(key, str) else tup.fields[key]
        raise TypeError(
            f"field {name!r} of stream {tup.source_stream!r} from {tup.source_component!r} "
            f"is {type(value).__name__}, not {what}: {value!r}"
        )

    def by_position(self: Tuple, position: int) -> Any:
        return check(self, position)

    def by_field(self: Tuple, field: str) -> Any:
        return check(self, field)

    by_position.__doc__ = f"Returns the value at `position`, which must be {what} or None."
    by_field.__doc__ = f"Returns the value of `field`, which must be {what} or None."
    return by_position, by_field


class Tuple:
    """A named list of values, as a bolt receives it.

    Values are read by field name or position; `len` and iteration work as for a list. Two tuples are the same only
    if they are the same delivery: equality is identity, as in Storm.

    Example:
        >>> from storm_on_spark.testing import make_tuple
        >>> tup = make_tuple(["storm", 3], fields=["word", "count"])
        >>> tup["word"], tup[1], tup.values
        ('storm', 3, ['storm', 3])
    """

    # No `__init__`: it would take 60 ns per tuple. The loops that make tuples set these attributes directly.
    __slots__ = ("_delivery", "_position", "_settled", "_values")

    _values: Sequence[Any]
    _delivery: Delivery
    _position: int
    #: Whether the tuple has been acked or failed; later acks and fails of it are ignored.
    _settled: bool

    @classmethod
    def of(cls, values: Sequence[Any], delivery: Delivery, position: int = 0) -> Tuple:
        """Returns the tuple of `values` at `position` of a delivery."""
        tup = cls()
        tup._values, tup._delivery, tup._position, tup._settled = values, delivery, position, False
        return tup

    # --- values ---------------------------------------------------------------

    def __getitem__(self, key: str | int) -> Any:
        if key.__class__ is str:
            try:
                return self._values[self._delivery.positions[key]]
            except KeyError:
                self._delivery.fields.index(key)  # raises a readable error
                raise
        return self._values[key]  # type: ignore[index]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __contains__(self, field: object) -> bool:
        return field in self._delivery.fields

    @property
    def values(self) -> list[Any]:
        """The values, in the order of `fields`; a new list."""
        return list(self._values)

    @property
    def fields(self) -> Fields:
        """The names of the values."""
        return self._delivery.fields

    def select(self, selector: Fields) -> list[Any]:
        """Returns the values of the fields that `selector` names, in its order."""
        return [self[name] for name in selector]

    def as_dict(self) -> dict[str, Any]:
        """Returns the values by field name."""
        return dict(zip(self._delivery.fields, self._values, strict=True))

    # --- where it comes from ---------------------------------------------------------------

    @property
    def source_component(self) -> str:
        """The id of the component that emitted the tuple."""
        return self._delivery.component

    @property
    def source_stream(self) -> str:
        """The stream on which the tuple was emitted."""
        return self._delivery.stream

    @property
    def source_task(self) -> int:
        """The task that emitted the tuple; -1 for the system."""
        return self._delivery.task

    @property
    def source_global_stream_id(self) -> GlobalStreamId:
        """Component and stream of origin."""
        return GlobalStreamId(self._delivery.component, self._delivery.stream)

    @property
    def is_tick(self) -> bool:
        """Whether this is a tick tuple of the system."""
        return self._delivery.stream == TICK_STREAM and self._delivery.component == SYSTEM_COMPONENT

    @property
    def is_timer(self) -> bool:
        """Whether this is a timer tuple of the system; see `declare_timers` of a bolt."""
        return self._delivery.stream == TIMER_STREAM and self._delivery.component == SYSTEM_COMPONENT

    @property
    def message_id(self) -> dict[int, int]:
        """The anchors: root id -> edge id. Empty for an unanchored tuple."""
        return dict.fromkeys(self._roots, self._edge)

    @property
    def _roots(self) -> tuple[int, ...]:
        lineage = self._delivery.lineage
        if lineage is None:
            return ()
        root = lineage.roots[self._position]
        if isinstance(root, tuple):
            return root
        return (int(root),) if root else ()

    @property
    def _edge(self) -> int:
        lineage = self._delivery.lineage
        return 0 if lineage is None else int(lineage.edges[self._position])

    # --- Storm's accessors, for ported code ---------------------------------------------------------------

    def size(self) -> int:
        """Returns the number of values."""
        return len(self._values)

    def contains(self, field: str) -> bool:
        """Returns whether the tuple has a field of that name."""
        return field in self._delivery.fields

    def field_index(self, field: str) -> int:
        """Returns the position of `field`."""
        return self._delivery.fields.index(field)

    def get_fields(self) -> Fields:
        """Returns the names of the values."""
        return self._delivery.fields

    def get_values(self) -> list[Any]:
        """Returns the values as a new list."""
        return list(self._values)

    def get_value(self, position: int) -> Any:
        """Returns the value at `position`, counted from 0."""
        return self._values[position]

    def get_value_by_field(self, field: str) -> Any:
        """Returns the value of `field`."""
        return self[field]

    def get_source_component(self) -> str:
        """Returns the id of the component that emitted the tuple."""
        return self._delivery.component

    def get_source_stream_id(self) -> str:
        """Returns the stream on which the tuple was emitted."""
        return self._delivery.stream

    get_source_stream = get_source_stream_id

    def get_source_task(self) -> int:
        """Returns the task that emitted the tuple."""
        return self._delivery.task

    def get_source_global_stream_id(self) -> GlobalStreamId:
        """Returns component and stream of origin."""
        return self.source_global_stream_id

    def get_message_id(self) -> dict[int, int]:
        """Returns the anchors: root id -> edge id."""
        return self.message_id

    # --- Storm's typed accessors: the value, or None, or a TypeError that names the field ------------

    get_string, get_string_by_field = _typed(str, "a string")
    get_integer, get_integer_by_field = _typed(int, "an integer")
    get_long, get_long_by_field = _typed(int, "an integer")
    get_short, get_short_by_field = _typed(int, "an integer")
    get_byte, get_byte_by_field = _typed(int, "an integer")
    get_boolean, get_boolean_by_field = _typed(bool, "a boolean")
    get_double, get_double_by_field = _typed(float, "a number")
    get_float, get_float_by_field = _typed(float, "a number")
    get_binary, get_binary_by_field = _typed(bytes, "bytes")

    # --- identity and pickling ---------------------------------------------------------------

    def __repr__(self) -> str:
        pairs = ", ".join(f"{n}={v!r}" for n, v in zip(self._delivery.fields, self._values, strict=False))
        stream = "" if self.source_stream == DEFAULT_STREAM else f":{self.source_stream}"
        return f"Tuple({pairs}; from {self.source_component}{stream} task {self.source_task})"

    def __reduce__(self) -> tuple[Any, ...]:
        # A tuple that a bolt keeps across micro-batches travels alone, without its delivery.
        delivery = self._delivery
        return (
            _restore,
            (
                self._values,
                delivery.component,
                delivery.stream,
                delivery.task,
                delivery.fields,
                self._roots,
                self._edge,
                self._settled,
            ),
        )


class JointAnchors:
    """Anchors of an emit: tuples whose roots are gathered once, for many emits.

    Args:
        tuples: an iterable that can be gone over again.
    """

    def __init__(self, tuples: Iterable[Tuple]) -> None:
        self._tuples = tuples
        self._roots: tuple[int, ...] | None = None

    @property
    def roots(self) -> tuple[int, ...]:
        """The ids of the trees that any of the tuples belongs to."""
        if self._roots is None:
            self._roots = tuple(dict.fromkeys(root for tup in self._tuples for root in tup._roots))
        return self._roots

    def __iter__(self) -> Iterator[Tuple]:
        return iter(self._tuples)


class HeldTuples:
    """Tuples that a bolt holds, unacked, as columns: for state, in a fraction of the bytes and the time.

    Args:
        tuples: the tuples.

    Example:
        >>> import pickle
        >>> from storm_on_spark.testing import make_tuple
        >>> held = HeldTuples([make_tuple([word], ["word"]) for word in ("snow", "white")])
        >>> pickle.loads(pickle.dumps(held)).tuples()
        [Tuple(word='snow'; from source task 1), Tuple(word='white'; from source task 1)]
    """

    __slots__ = ("_edges", "_origins", "_roots", "_sources", "_values")

    def __init__(self, tuples: Sequence[Tuple]) -> None:
        sources: dict[Any, int] = {}
        self._values = [tup._values for tup in tuples]
        #: The delivery of each tuple, by its number in `_sources`; empty if all came in one.
        self._origins: list[int] = []
        #: Roots and edge of each tuple; empty if none has a root.
        self._roots: list[Any] = []
        self._edges: list[int] = []
        last: Any = None
        number = 0
        roots: Any = None
        edges: Any = ()
        for tup in tuples:
            it = tup._delivery
            if it is not last:
                # Once for all tuples of a chunk: to hash the source of each took half of the time.
                last = it
                source = (it.component, it.stream, it.task, it.fields, it.received)
                number = sources.setdefault(source, len(sources))
                lineage = it.lineage
                roots, edges = (None, ()) if lineage is None else (lineage.roots, lineage.edges)
            self._origins.append(number)
            root = 0 if roots is None else roots[tup._position]
            self._roots.append(root if isinstance(root, tuple) else (int(root),) if root else ())
            self._edges.append(0 if roots is None else int(edges[tup._position]))
        self._sources = list(sources)
        if len(sources) < 2:
            self._origins = []
        if not any(self._roots):
            self._roots, self._edges = [], []

    def tuples(self) -> list[Tuple]:
        """Returns the tuples, in order; new objects."""
        lineage = KnownLineage(self._roots, self._edges) if self._roots else None
        deliveries = []
        for component, stream, task, fields, received in self._sources:
            deliveries.append(Delivery(component, stream, task, fields, lineage))
            deliveries[-1].received = received
        of = Tuple.of
        if not self._origins:
            return [of(values, deliveries[0], at) for at, values in enumerate(self._values)]
        return [of(values, deliveries[self._origins[at]], at) for at, values in enumerate(self._values)]

    @property
    def tracked(self) -> bool:
        """Whether any tuple belongs to a tree."""
        return bool(self._roots)

    def __len__(self) -> int:
        return len(self._values)

    def __getstate__(self) -> Any:
        return [getattr(self, name) for name in self.__slots__]

    def __setstate__(self, state: Any) -> None:
        for name, value in zip(self.__slots__, state, strict=True):
            setattr(self, name, value)


def detached(tup: Tuple) -> Tuple:
    """Returns a copy that belongs to no tree and may be the value of another tuple.

    Example:
        >>> from storm_on_spark.testing import make_tuple
        >>> detached(make_tuple(["snow"], ["word"])).message_id
        {}
    """
    it = tup._delivery
    return Tuple.of(tup._values, Delivery(it.component, it.stream, it.task, it.fields))


def _restore(
    values: Sequence[Any],
    component: str,
    stream: str,
    task: int,
    fields: Fields,
    roots: tuple[int, ...],
    edge: int,
    settled: bool,
) -> Tuple:
    delivery = Delivery(component, stream, task, fields, KnownLineage([roots], [edge]) if roots else None)
    # It is not part of the state, which is the same whenever a micro-batch runs.
    delivery.received = time.time()
    tup = Tuple.of(values, delivery)
    tup._settled = settled
    return tup
