"""A Delta table as a spout: Spark reads its rows, or its changes, by Delta's own source."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.api.streams.fields import Fields
from storm_on_spark.connectors.delta.bolt import checked_location
from storm_on_spark.connectors.sources.retry import RetryBackoff
from storm_on_spark.connectors.sources.spark_source import NumberedSourceSpout
from storm_on_spark.spark.session.jars import Jar, JarSet, use

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGE_FIELDS: Final = ("_change_type", "_commit_version", "_commit_timestamp")
"""Behind the fields of a change: `insert`, `delete`, `update_preimage` or `update_postimage`, and its commit."""

_DELTA: Final = {
    "delta-spark_4.2_2.13": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    "delta-storage": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    "delta-kernel-api": "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    "delta-kernel-defaults": "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    "delta-kernel-unitycatalog": "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
}
_CATALOG: Final = {
    "unitycatalog-client": "48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19",
    "unitycatalog-hadoop": "c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150",
}
JARS: Final = JarSet(
    name="Delta source of Spark",
    jars=(
        *(Jar("io.delta", name, "4.4.0", sha256) for name, sha256 in _DELTA.items()),
        *(Jar("io.unitycatalog", name, "0.6.0", sha256) for name, sha256 in _CATALOG.items()),
    ),
    without="DeltaSpout can't read; DeltaBolt and EnrichBolt need no jar",
    patience_secs=120.0,
)
_CLASS: Final = "org.apache.spark.sql.delta.sources.DeltaDataSource"
_EXTENSIONS: Final = "spark.sql.extensions"
_CHECK: Final = "spark.databricks.delta.requiredSparkConfsCheck.enabled"
"""Delta asks for its extension of SQL, which a session gets only when it starts. Its source works without."""

_CHANGED: Final = (
    "the table has other columns: start the topology again, and it continues with them. If it ends so again, a column "
    "has another type or is gone: give it a new checkpoint, and the starting_version to continue from"
)
_NOT_APPENDED: Final = (
    "rows were deleted or updated: read changes with change_feed=True, or pass them over with "
    'options={"skipChangeCommits": True}'
)

_OURS: Final[Mapping[str, str]] = {
    "readchangefeed": "it is change_feed",
    "readchangedata": "it is change_feed",
    "startingversion": "it is starting_version",
    "startingtimestamp": "it is starting_version",
    "maxfilespertrigger": "it is max_files_per_batch",
}


def prepare(spark: SparkSession) -> None:
    """Makes a session able to read Delta tables.

    Raises:
        SetupError: the jars can't be had.
    """
    use(spark, JARS, _CLASS)
    if "DeltaSparkSessionExtension" not in (spark.conf.get(_EXTENSIONS, "") or ""):
        spark.conf.set(_CHECK, "false")


class DeltaSpout(NumberedSourceSpout):
    """Emits the rows of a Delta table: first those that are there, then those that are appended.

    Message ids are numbers, or with `change_feed` pairs of the commit's version and a number: the number says where
    Spark read the row.

    Args:
        table: a path or URI.
        fields: the columns to emit, in this order.
        change_feed: whether to emit changes, also deletes and updates, with the fields `CHANGE_FIELDS` behind the
            others. The table needs `delta.enableChangeDataFeed`.
        starting_version: the first version of which rows or changes are emitted, or `latest` for those to come; None
            for the whole table. It counts where there is no checkpoint yet.
        options: more of Delta's source, such as `skipChangeCommits` or `maxBytesPerTrigger`.
        max_files_per_batch: how many new files a micro-batch reads at most.
        retry: when a failed row is emitted again, and when it is given up.
        dead_letter_stream: where rows go that are given up; None to drop them with a warning in the log.

    Raises:
        ConfigError: an argument makes no sense.

    Example:
        >>> DeltaSpout("/data/words", ["word"], change_feed=True).tuple_streams()
        {'default': Fields('word', '_change_type', '_commit_version', '_commit_timestamp')}
    """

    advice: ClassVar[Mapping[str, str]] = {
        "DELTA_SCHEMA_CHANGED": _CHANGED,
        "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS": _CHANGED,
        "DELTA_SCHEMA_CHANGED_WITH_VERSION": _CHANGED,
        "DELTA_SOURCE_IGNORE_DELETE": _NOT_APPENDED,
        "DELTA_SOURCE_TABLE_IGNORE_CHANGES": _NOT_APPENDED,
    }

    def __init__(
        self,
        table: str | os.PathLike[str],
        fields: Sequence[str],
        change_feed: bool = False,
        starting_version: int | Literal["latest"] | None = None,
        options: Mapping[str, str | int | float | bool] | None = None,
        max_files_per_batch: int = 100,
        retry: RetryBackoff = RetryBackoff(),  # noqa: B008 # it is immutable
        dead_letter_stream: str | None = None,
    ) -> None:
        super().__init__(retry, dead_letter_stream)
        self._table = checked_location(table)
        names: Any = fields
        if isinstance(names, str) or not names or not all(isinstance(name, str) and name for name in names):
            raise ConfigError(f"fields are one or more names of columns (given {fields!r:.200})", key="fields")
        version: Any = starting_version
        if version not in (None, "latest") and (
            not isinstance(version, int) or isinstance(version, bool) or version < 0
        ):
            raise ConfigError(
                f"starting_version is a whole number of 0 or more, or 'latest' (given {version!r:.100})",
                key="starting_version",
            )
        most: Any = max_files_per_batch
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise ConfigError(
                f"max_files_per_batch must be a whole number of 1 or more (given {most!r:.100})",
                key="max_files_per_batch",
            )
        for name in options or {}:
            if (reason := _OURS.get(name.lower())) is not None:
                raise ConfigError(f"{name} can't be set here: {reason}", key=name)
        self._feed = change_feed
        self._fields = Fields(*names, *(CHANGE_FIELDS if change_feed else ()))
        self._options: dict[str, Any] = {**(options or {}), "maxFilesPerTrigger": most}
        if change_feed:
            self._options["readChangeFeed"] = True
        if version is not None:
            self._options["startingVersion"] = version

    def read(self, spark: SparkSession) -> DataFrame:
        """Returns Delta's source.

        Raises:
            SetupError: its jars can't be had.
        """
        prepare(spark)
        rows = spark.readStream.format("delta").options(**self._options).load(self._table)
        return self.selected(rows)

    def message_id(self, row: Mapping[str, Any]) -> int | tuple[int, int]:
        """Returns where Spark read the row, with a change's version before it."""
        root: int = super().message_id(row)
        return (int(row[CHANGE_FIELDS[1]]), root) if self._feed else root
