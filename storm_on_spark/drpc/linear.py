"""`LinearDRPCTopologyBuilder`: a chain of bolts that answers the requests of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from storm_on_spark.api.building.builder import BoltDeclarer, TopologyBuilder
from storm_on_spark.api.component import BaseBasicBolt, BaseRichBolt
from storm_on_spark.api.custom_grouping import CustomStreamGrouping
from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.declarer import OutputFieldsDeclarer
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM
from storm_on_spark.api.topology import Topology
from storm_on_spark.coordination import (
    COORD_STREAM,
    BatchBoltExecutor,
    CoordinatedBolt,
    FinishedCallback,
    IBatchBolt,
    IdStreamSpec,
    SourceArgs,
)
from storm_on_spark.drpc.bolts import ARGS_STREAM, ID_STREAM, RETURN_STREAM, JoinResult, PrepareRequest, ReturnResults
from storm_on_spark.drpc.spout import DRPCSpout, HasInvocations

SPOUT_ID = "spout"
PREPARE_ID = "prepare-request"

_Subscribe = Callable[[str, BoltDeclarer], object]


@dataclass
class _Component:
    bolt: BaseRichBolt | BaseBasicBolt
    parallelism: int
    conf: dict[str, object] = field(default_factory=dict)
    subscriptions: list[_Subscribe] = field(default_factory=list)


class LinearDRPCInputDeclarer:
    """Returned by `add_bolt`: how the bolt gets the tuples of the bolt before it. Every method returns the declarer.

    Args:
        component: whose input it is.
    """

    def __init__(self, component: _Component) -> None:
        self._component = component

    def shuffle_grouping(self, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Spreads tuples evenly over the tasks."""
        return self._add(lambda before, bolt: bolt.shuffle_grouping(before, stream))

    def fields_grouping(
        self, fields: Fields | str | Iterable[str], stream: str = DEFAULT_STREAM
    ) -> LinearDRPCInputDeclarer:
        """Sends tuples with equal values of `fields` to the same task."""
        return self._add(lambda before, bolt: bolt.fields_grouping(before, fields, stream))

    def partial_key_grouping(
        self, fields: Fields | str | Iterable[str], stream: str = DEFAULT_STREAM
    ) -> LinearDRPCInputDeclarer:
        """Splits each key between two tasks."""
        return self._add(lambda before, bolt: bolt.partial_key_grouping(before, fields, stream))

    def all_grouping(self, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Sends every tuple to every task."""
        return self._add(lambda before, bolt: bolt.all_grouping(before, stream))

    def global_grouping(self, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Sends all tuples to one task."""
        return self._add(lambda before, bolt: bolt.global_grouping(before, stream))

    def none_grouping(self, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Lets any task receive a tuple."""
        return self._add(lambda before, bolt: bolt.none_grouping(before, stream))

    def local_or_shuffle_grouping(self, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Works like a shuffle grouping, but prefers a task in the same partition."""
        return self._add(lambda before, bolt: bolt.local_or_shuffle_grouping(before, stream))

    def direct_grouping(self, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Lets the emitting bolt choose the task."""
        return self._add(lambda before, bolt: bolt.direct_grouping(before, stream))

    def custom_grouping(self, grouping: CustomStreamGrouping, stream: str = DEFAULT_STREAM) -> LinearDRPCInputDeclarer:
        """Lets user code choose the tasks."""
        return self._add(lambda before, bolt: bolt.custom_grouping(before, grouping, stream))

    def add_configurations(self, conf: Mapping[str, object]) -> LinearDRPCInputDeclarer:
        """Sets configuration of the bolt."""
        self._component.conf.update(conf)
        return self

    def add_configuration(self, key: str, value: object) -> LinearDRPCInputDeclarer:
        """Sets one key of the bolt's configuration."""
        return self.add_configurations({key: value})

    def _add(self, subscribe: _Subscribe) -> LinearDRPCInputDeclarer:
        self._component.subscriptions.append(subscribe)
        return self


class LinearDRPCTopologyBuilder:
    """Builds a topology that answers the requests of a function with a chain of bolts.

    The first field of every tuple is the request's id, and every bolt has to emit it. The first bolt gets `(request,
    args)`; the last one declares a single stream with two fields, the id and the result.

    Args:
        function: its name.

    Example:
        >>> from storm_on_spark import BaseBasicBolt, Fields
        >>> class Exclaim(BaseBasicBolt):
        ...     def execute(self, tup, collector):
        ...         collector.emit([tup[0], tup[1] + "!"])
        ...     def declare_output_fields(self, declarer):
        ...         declarer.declare(Fields("id", "result"))
        >>> builder = LinearDRPCTopologyBuilder("exclaim")
        >>> _ = builder.add_bolt(Exclaim(), 3)
        >>> builder.create_remote_topology()
        Topology(spouts=['spout'], bolts=['prepare-request', 'bolt0', 'bolt1', 'bolt2'])
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._components: list[_Component] = []

    def add_bolt(
        self, bolt: BaseRichBolt | BaseBasicBolt | IBatchBolt, parallelism: int = 1
    ) -> LinearDRPCInputDeclarer:
        """Adds the next bolt of the chain."""
        component = _Component(BatchBoltExecutor(bolt) if isinstance(bolt, IBatchBolt) else bolt, parallelism)
        self._components.append(component)
        return LinearDRPCInputDeclarer(component)

    def create_local_topology(self, drpc: HasInvocations) -> Topology:
        """Returns the topology, for a `LocalDRPC`.

        Raises:
            InvalidTopologyError: it has no bolts, or the last one has not one stream of two fields.
        """
        return self._create(DRPCSpout(self._function, drpc))

    def create_remote_topology(self) -> Topology:
        """Returns the topology, for the servers of `drpc.servers`; errors as for `create_local_topology`."""
        return self._create(DRPCSpout(self._function))

    def _create(self, spout: DRPCSpout) -> Topology:
        if not self._components:
            raise InvalidTopologyError(f"the DRPC topology of {self._function!r} has no bolts: call add_bolt")
        builder = TopologyBuilder()
        builder.set_spout(SPOUT_ID, spout)
        builder.set_bolt(PREPARE_ID, PrepareRequest()).none_grouping(SPOUT_ID)
        last = len(self._components) - 1
        for number, component in enumerate(self._components):
            # The first bolt gets one tuple per request, in one task.
            sources = {} if number == 0 else {_bolt(number - 1): SourceArgs(single=number == 1)}
            announced = None
            if number == last and isinstance(component.bolt, FinishedCallback):
                # One task has the result; otherwise each task of the bolt would finish every request.
                announced = IdStreamSpec.make_detect_spec(PREPARE_ID, ID_STREAM)
            # A single bolt that is not a batch bolt has nothing to coordinate. Not wrapping it saves 9 % of a round in
            # real time: if it is stateless, it runs where its input is prepared.
            coordinated = last > 0 or isinstance(component.bolt, FinishedCallback)
            executed = CoordinatedBolt(component.bolt, sources, announced) if coordinated else component.bolt
            bolt = builder.set_bolt(_bolt(number), executed, component.parallelism)
            bolt.add_configurations(component.conf)
            if announced is not None:
                bolt.fields_grouping(PREPARE_ID, Fields("request"), ID_STREAM)
            if number == 0 and not component.subscriptions:
                bolt.none_grouping(PREPARE_ID, ARGS_STREAM)
            before = PREPARE_ID if number == 0 else _bolt(number - 1)
            if number > 0:
                if not component.subscriptions:
                    raise InvalidTopologyError(
                        f'bolt "{_bolt(number)}" has no grouping: only the first bolt of a DRPC topology needs none',
                        component=_bolt(number),
                    )
                bolt.direct_grouping(before, COORD_STREAM)
            for subscribe in component.subscriptions:
                subscribe(before, bolt)
        stream, key = self._output(last)
        join = builder.set_bolt(_bolt(last + 1), JoinResult(PREPARE_ID))
        join.fields_grouping(_bolt(last), Fields(key), stream)
        join.fields_grouping(PREPARE_ID, Fields("request"), RETURN_STREAM)
        builder.set_bolt(_bolt(last + 2), ReturnResults()).none_grouping(_bolt(last + 1))
        return builder.create_topology()

    def _output(self, last: int) -> tuple[str, str]:
        """Returns the stream of results, and the field with the request's id."""
        declarer = OutputFieldsDeclarer(_bolt(last))
        self._components[last].bolt.declare_output_fields(declarer)
        found = {name: list(spec.fields) for name, spec in declarer.streams.items()}
        if len(found) != 1 or len(next(iter(found.values()))) != 2:
            raise InvalidTopologyError(
                f'bolt "{_bolt(last)}", the last one, must declare one stream of two fields, the request\'s id and the '
                f"result; it declares {found}",
                component=_bolt(last),
            )
        ((stream, (key, _)),) = found.items()
        return stream, key


def _bolt(number: int) -> str:
    return f"bolt{number}"
