"""The object with which a component declares its output streams."""

from __future__ import annotations

from collections.abc import Iterable

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.api.streams.constants import SYSTEM_PREFIX, is_system_id
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.stream import DEFAULT_STREAM, StreamSpec
from storm_on_spark.api.text.wording import kind_of, name_fault, quoted


class OutputFieldsDeclarer:
    """Collects the streams that one component declares.

    Args:
        component: its id, for messages.

    Example:
        >>> declarer = OutputFieldsDeclarer("split")
        >>> declarer.declare(Fields("word"))
        >>> declarer.declare_stream("errors", ["sentence", "reason"])
        >>> declarer.streams["errors"].fields
        Fields('sentence', 'reason')
    """

    def __init__(self, component: str) -> None:
        self._component = component
        self._streams: dict[str, StreamSpec] = {}

    @property
    def streams(self) -> dict[str, StreamSpec]:
        """The streams declared so far, by id; a new dict."""
        return dict(self._streams)

    def declare(self, fields: Fields | str | Iterable[str], direct: bool = False) -> None:
        """Declares the default stream; see `declare_stream`."""
        self.declare_stream(DEFAULT_STREAM, fields, direct)

    def declare_stream(self, stream: str, fields: Fields | str | Iterable[str], direct: bool = False) -> None:
        """Declares one stream.

        Args:
            stream: its id; must not start with `__`.
            fields: the names of its values.
            direct: whether the emitting component chooses the receiving task with `emit_direct`.

        Raises:
            InvalidTopologyError: the stream is already declared, or an argument is invalid.
        """
        if fault := name_fault(stream):
            raise self._error(f"a stream id {fault}", None)
        if is_system_id(stream):
            raise self._error(
                f'stream "{stream}": ids that start with "{SYSTEM_PREFIX}" are reserved for the system',
                stream,
            )
        if stream in self._streams:
            raise self._error(
                f'stream "{stream}" is declared twice; it already has the fields '
                f"{quoted(self._streams[stream].fields)}",
                stream,
            )
        if not isinstance(direct, bool):
            raise self._error(
                f'stream "{stream}": direct must be True or False, not {kind_of(direct)}; '
                "the order is (fields, direct)",
                stream,
            )
        if not isinstance(fields, Iterable):
            raise self._error(
                f'stream "{stream}": fields must be Fields, a name or a list of names, not {kind_of(fields)}',
                stream,
            )
        try:
            checked = Fields.of(fields)
        except InvalidTopologyError as error:
            raise self._error(f'stream "{stream}": {error}', stream) from None
        self._streams[stream] = StreamSpec(checked, direct)

    def _error(self, problem: str, stream: str | None) -> InvalidTopologyError:
        return InvalidTopologyError(
            f'component "{self._component}": {problem}', component=self._component, stream=stream
        )
