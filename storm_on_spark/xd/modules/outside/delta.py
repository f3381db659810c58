"""Delta tables: a source that emits rows as they are appended, and a sink that appends a row for each message.

Both use the library deltalake, so they need no Spark.
"""

from __future__ import annotations

import datetime
import decimal
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from storm_on_spark.api.errors import ConfigError, SetupError
from storm_on_spark.api.task.collector import SpoutOutputCollector
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.api.tuple import Tuple
from storm_on_spark.connectors.delta import DeltaBolt
from storm_on_spark.connectors.sinks import Columns
from storm_on_spark.connectors.sinks.dead_letters import DeadLetters
from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option
from storm_on_spark.xd.modules.messages.message import written
from storm_on_spark.xd.modules.messages.repeating import RepeatingSource

if TYPE_CHECKING:
    from deltalake import DeltaTable

_PAYLOAD: Final = "payload"
_BATCH: Final = 1_000


class DeltaSource(RepeatingSource):
    """Emits the rows of a Delta table in a folder, and then those that are appended, version by version.

    A payload is a map of the columns, or the value of the only column `payload`; the header `delta_version` is the
    version that added the row. Dates and times become texts in ISO 8601, and decimals texts.

    Args:
        table: the folder; the table may appear later.
        starting_version: the first version whose rows are emitted; below 0 for all rows of the table, beginning with
            its present ones.
        fixed_delay: seconds between two looks for new versions.

    Raises:
        ValueError: from `next_tuple`: a version changes or removes rows, or is no longer in the table's log.
    """

    services = ("_rows",)

    def __init__(self, table: str, starting_version: int, fixed_delay: float) -> None:
        super().__init__()
        # Spouts have a different working directory from the command.
        self.table = str(Path(table).absolute())
        self.starting_version = starting_version
        self.fixed_delay = fixed_delay
        #: The version whose rows are emitted; None before the table was found.
        self._version: int | None = None
        #: How many rows of that version were emitted.
        self._row = 0
        #: Whether to emit all rows of the table at that version, and not only those that it added.
        self._whole = False
        self._looked: float | None = None

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        """Keeps the collector.

        Raises:
            SetupError: deltalake is not installed.
        """
        super().open(conf, context, collector)
        self._rows: Iterator[dict[str, Any]] | None = None
        try:
            import deltalake as _  # noqa: F401 # needed later
        except ImportError as error:
            raise SetupError(needs_extra("the module delta", "delta", "deltalake")) from error

    def produce(self) -> None:
        """Sends the next row."""
        if self._rows is None and not self._find():
            return
        assert self._rows is not None
        assert self._version is not None
        row = next(self._rows, None)
        if row is None:
            self._version, self._row, self._whole, self._rows = self._version + 1, 0, False, None
            return
        self._row += 1
        self.send(row[_PAYLOAD] if list(row) == [_PAYLOAD] else row, {"delta_version": self._version})

    def _find(self) -> bool:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        now = self.now()
        if self._looked is not None and 0 <= now - self._looked < self.fixed_delay:
            return False
        try:
            newest = DeltaTable(self.table).version()
        except TableNotFoundError:
            self._looked = now
            return False
        if self._version is None:
            self._whole = self.starting_version < 0
            self._version = newest if self._whole else self.starting_version
        if self._version > newest:
            self._looked = now
            return False
        self._rows = self._from(DeltaTable(self.table, version=self._version))
        return True

    def _from(self, table: DeltaTable) -> Iterator[dict[str, Any]]:
        """Yields the rows after those that were emitted, always in the same order."""
        from pyarrow.dataset import FileSystemDataset

        data = table.to_pyarrow_dataset()
        # These are paths of files; in the log they are URI-encoded once.
        fragments = {fragment.path: fragment for fragment in data.get_fragments()}
        names = set(fragments) if self._whole else self._added(table.version())
        if missing := names - set(fragments):
            raise ValueError(f"{self.table}: version {table.version()} has files that can't be read: {min(missing)}")
        left = self._row
        for name in sorted(names):
            part = FileSystemDataset([fragments[name]], data.schema, data.format, data.filesystem)
            for batch in part.to_batches(batch_size=_BATCH):
                skipped = min(left, batch.num_rows)
                left -= skipped
                for row in batch.slice(skipped).to_pylist():
                    yield {column: _plain(value) for column, value in row.items()}

    def _added(self, version: int) -> set[str]:
        path = Path(self.table) / "_delta_log" / f"{version:020}.json"
        try:
            actions = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
        except FileNotFoundError:
            raise ValueError(
                f"{self.table}: version {version} is not in its log any more; begin with a later"
            ) from None
        if any(action["remove"].get("dataChange", True) for action in actions if "remove" in action):
            raise ValueError(f"{self.table}: version {version} changes or removes rows; only appended rows are emitted")
        added = (action["add"] for action in actions if "add" in action)
        # A file that only rearranges rows adds none.
        return {unquote(each["path"]) for each in added if each.get("dataChange", True)}


class DeltaSink(DeltaBolt):
    """Appends a row for each message.

    The rows of a micro-batch, or of a container's step, are written once, in one commit.

    Args:
        table: a path, or a URI; the table is made if it is missing.
        columns: such as `id long, total double`; a payload that is a map has a value for each. The only column
            `payload` takes the payload itself, as a text.
    """

    def __init__(self, table: str, columns: str) -> None:
        super().__init__(table, _columns(columns).types)

    def refuse_to(self, folder: str) -> None:
        """See `RefusesRows`."""
        self._dead_letters = DeadLetters(folder, f"the Delta table {self.location}", "--dead-letters FOLDER")

    def execute(self, tup: Tuple) -> None:
        """Takes a message for the commit.

        Raises:
            ValueError: its payload does not have the columns, or not their types.
        """
        if tup.is_tick:
            self._collector.ack(tup)
            return
        row = self._row(tup["payload"])
        try:
            # A message that does not fit fails alone.
            self.columns.table([row])
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{row!r:.200} does not fit in {self.columns.types}: {error}") from error
        self._rows.append((tup, row))

    def _row(self, payload: Any) -> tuple[Any, ...]:
        names = self.columns.names
        if names == (_PAYLOAD,) and not isinstance(payload, dict):
            return (written(payload) if self.columns.types[_PAYLOAD] == "string" else payload,)
        if names == (_PAYLOAD,) and _PAYLOAD not in payload:
            return (written(payload),)
        if not isinstance(payload, dict) or any(name not in payload for name in names):
            raise ValueError(f"expected a map with {', '.join(names)}, got {payload!r:.100}")
        return tuple(payload[name] for name in names)


def _plain(value: Any) -> Any:
    """Returns a value in the form used in messages."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, bytes):
        raise ValueError("expected columns of texts, numbers, times, lists and maps, got one of bytes")
    return value


def _columns(text: str) -> Columns:
    types: dict[str, str] = {}
    for part in _between_commas(text):
        name, _, kind = part.strip().partition(" ")
        if not kind or name in types:
            raise ValueError(f"Expected columns such as id long, total double, each once; got {text!r:.200}")
        types[name] = kind.strip()
    try:
        return Columns(types)
    except ConfigError as error:
        raise ValueError(str(error)) from error


def _between_commas(text: str) -> Iterator[str]:
    """Splits a text at commas outside of brackets: `a decimal(9, 2)` is one part."""
    pieces: list[str] = []
    open_brackets = 0
    for piece in text.split(","):
        pieces.append(piece)
        open_brackets += piece.count("(") - piece.count(")")
        if open_brackets <= 0:
            yield ",".join(pieces)
            pieces, open_brackets = [], 0
    if pieces:
        yield ",".join(pieces)


def _a_folder(text: str) -> None:
    if not text or "\0" in text or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text):
        raise ValueError(f"Expected the folder of a table, got {text!r:.100}")


SOURCE: Final = ModuleDeclaration(
    "source",
    "delta",
    "Emits the rows of a Delta table, and then those that are appended.",
    DeltaSource,
    (
        Option("table", "text", None, "The folder; the table may appear later.", check=_a_folder),
        Option("startingVersion", "integer", "-1", "The first version to emit; -1 for all rows there are."),
        Option("fixedDelay", "number", "1", "Seconds between two looks for new versions.", minimum=0.001),
    ),
)

SINK: Final = ModuleDeclaration(
    "sink",
    "delta",
    "Appends a row to a Delta table for each message.",
    DeltaSink,
    (
        Option("table", "text", None, "A path or a URI; the table is made if it is missing."),
        Option(
            "columns",
            "text",
            "payload string",
            "Names and types of Spark SQL, with commas; a payload that is a map has a value for each.",
            check=_columns,
        ),
    ),
)
