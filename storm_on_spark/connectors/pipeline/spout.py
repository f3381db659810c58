"""A streaming DataFrame as a spout."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.api.streams.types import PLAIN_TYPES, check_type
from storm_on_spark.connectors.sources.retry import RetryBackoff
from storm_on_spark.connectors.sources.spark_source import NumberedSourceSpout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SPARKS_NAMES: Final = {"bigint": "long", "smallint": "short", "tinyint": "byte"}
"""What Spark calls some types, and what they are for `Fields`."""
_frames: WeakValueDictionary[str, DataFrame] = WeakValueDictionary()
#: DataFrames of this process, by the key that copies of their spouts have. They live as long as their spouts.


class DataFrameSpout(NumberedSourceSpout):
    """Emits the rows of a streaming DataFrame, with what the user's own session did to them before.

    The DataFrame may have projections, filters, `explode`, unions, deterministic functions and `mapInArrow`. What keeps
    state or reorders rows is refused with a sentence, and so is what gives other values the second time: a micro-batch
    that is executed again must have the same rows in the same places. Message ids are numbers that say where Spark read
    the row.

    Args:
        frame: the DataFrame. It belongs to this process, and the topology must be started on its session. Or a function
            that makes it from a session, for a topology that another process starts: `storm-spark submit` and
            `compile`, or a program that continues from a checkpoint.
        fields: the columns to emit, in this order; all of the DataFrame for None. A function needs them, because
            topologies are compiled without Spark. With types, the DataFrame's are compared.
        retry: when a failed row is emitted again, and when it is given up.
        dead_letter_stream: where rows go that are given up; None to drop them with a warning in the log.

    Raises:
        ConfigError: an argument makes no sense, or a topology can't read this DataFrame; the message says why.

    Example:
        >>> def clicks(spark):
        ...     events = spark.readStream.schema("user STRING, kind STRING").json("/data/events")
        ...     return events.where("kind = 'click'").select("user")
        >>> DataFrameSpout(clicks, Fields({"user": "string"})).tuple_streams()
        {'default': Fields({'user': 'string'})}
    """

    def __init__(
        self,
        frame: DataFrame | Callable[[SparkSession], DataFrame],
        fields: Fields | str | Iterable[str] | Mapping[str, str | None] | None = None,
        retry: RetryBackoff = RetryBackoff(),  # noqa: B008 # it is immutable
        dead_letter_stream: str | None = None,
    ) -> None:
        super().__init__(retry, dead_letter_stream)
        self._make: Callable[[SparkSession], DataFrame] | None = None
        self._frame: DataFrame | None = None
        self._key = ""
        given: Any = frame
        if not hasattr(given, "isStreaming"):
            if not callable(given):
                raise ConfigError(
                    f"expected a DataFrame, or a function that makes one from a session (given {given!r:.100})",
                    key="frame",
                )
            if fields is None:
                raise ConfigError("with a function that makes the DataFrame, name its fields", key="fields")
            self._make, self._fields = given, _fields(fields)
            return
        self._fields = _fields(fields if fields is not None else _typed(given))
        if (why := _refused(given, self._fields)) is not None:
            raise ConfigError(f"a topology can't read this DataFrame: {why}", key="frame")
        self._frame, self._key = given, uuid.uuid4().hex
        _frames[self._key] = given

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_frame": None}

    def read(self, spark: SparkSession) -> DataFrame:
        """Returns the DataFrame, with the columns that are fields.

        Raises:
            SetupError: it can't be read in this process or session, or not again.
        """
        from storm_on_spark.spark.query.reading.replayable import of_session

        if self._make is not None:
            frame = self._make(spark)
            why = _refused(frame, self._fields)
        else:
            found = _frames.get(self._key)
            if found is None:
                raise SetupError(
                    "the DataFrame of a DataFrameSpout is of the process that made it: "
                    "give the spout a function that makes it from a session"
                )
            frame = found
            # It was checked when the spout was made.
            why = None if of_session(frame, spark) else "it is of another session: start the topology on that one"
        if why is not None:
            raise SetupError(f"a topology can't read the DataFrame of a DataFrameSpout: {why}")
        return self.selected(frame)


def _fields(given: Fields | str | Iterable[str] | Mapping[str, str | None]) -> Fields:
    fields = Fields.of(given)
    if not len(fields):
        raise ConfigError("fields are one or more names of columns (given none)", key="fields")
    return fields


def _typed(frame: DataFrame) -> dict[str, str | None]:
    """Returns the columns of a DataFrame, with the types that fields have names for."""
    names = [name for name, _ in frame.dtypes]
    if len(set(names)) < len(names):
        raise ConfigError(f"columns must have different names (given {', '.join(names):.200})", key="frame")
    return {name: _type(kind) for name, kind in frame.dtypes}


def _type(kind: str) -> str | None:
    """Returns Spark's type as a field has it, or None.

    Example:
        >>> _type("array<bigint>"), _type("struct<a:int>"), _type("decimal(10,2)")
        ('array<long>', None, 'decimal(10,2)')
    """
    if kind.startswith("array<"):
        inner = _type(kind[6:-1])
        return None if inner is None or inner.startswith("array<") else f"array<{inner}>"
    name = _SPARKS_NAMES.get(kind, kind)
    if name not in PLAIN_TYPES:
        try:
            check_type("", name)
        except ConfigError:
            return None
    return name


def _refused(frame: Any, fields: Fields) -> str | None:
    """Returns why a topology can't read a DataFrame."""
    from storm_on_spark.spark.query.reading.replayable import not_replayable

    if not hasattr(frame, "isStreaming"):
        return f"the function must return a DataFrame, not {type(frame).__name__}"
    # Spark's messages about a column that is missing are good, but come late.
    dtypes = dict(frame.dtypes)
    for name in fields:
        if name not in dtypes:
            return f'it has no column "{name}"; there are {", ".join(dtypes):.200}'
        wanted = fields.types.get(name)
        if wanted is not None and _type(dtypes[name]) != wanted:
            return f'its column "{name}" is {dtypes[name]}, and the field is declared as {wanted}'
    return not_replayable(frame)
