"""Word count, Storm's first example: a reliable spout, a fields grouping and a bolt with plain state.

The text is a file or the files of a folder (`-c word.count.input=PATH`), by default Python's own language
documentation. Words are separated by whitespace, so the result is `Counter(text.split())`.

What to look for:

- `SentenceSpout` gives every sentence its place as message id, so a failed one is simply read again. Its position is a
  plain attribute: after a crash it continues where it stopped.
- `SplitSentence` keeps nothing, which the compiler proves: it runs in the same Python call as the reading.
- `WordCount` keeps a `Counter`. It is saved automatically, and survives every crash exactly.
- `report` reads that state back from Spark when the run is over.

    storm-spark run jobs/word_count.py -c word.count.input=README.md
    spark-submit jobs/word_count.py -c word.count.input=README.md
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from storm_on_spark import (
    BaseBasicBolt,
    BaseRichSpout,
    BasicOutputCollector,
    ConfigError,
    Fields,
    OutputFieldsDeclarer,
    SpoutOutputCollector,
    Topology,
    TopologyBuilder,
    TopologyContext,
    TopologyInfo,
    Tuple,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INPUT = "word.count.input"
"""Configuration key: the file or folder to read; Python's documentation if it is not set."""

TASKS = "word.count.tasks"
"""Configuration key: how many tasks count."""

conf = {TASKS: 2}

MAX_LINE_BYTES = 1 << 16
"""A longer line is emitted in pieces, cut at a blank if there is one."""

_TOP = 20

Position = tuple[int, int]
"""The place of a line: number of the document, bytes from its start."""


class Lines:
    """The lines of several documents, read one after the other.

    Args:
        path: the file or folder; None for Python's documentation.
        share: the number of this share of the documents, from 0.
        of: the number of shares.
    """

    def __init__(self, path: str | None, share: int, of: int) -> None:
        self._path, self._share, self._of = path, share, of
        #: The place of the next line.
        self.document = 0
        self.offset = 0
        self._names: tuple[str, ...] | None = None
        self._file: BinaryIO | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The documents."""
        if self._names is None:
            self._names = documents(self._path)[self._share :: self._of]
        return self._names

    def next(self) -> tuple[Position, str] | None:
        """Returns the next line that is not blank, and its place; None at the end."""
        while self.document < len(self.names):
            if self._file is None:
                self._file = open_document(self._path, self.names[self.document])
                self._file.seek(self.offset)
            position = self.document, self.offset
            line = read_line(self._file)
            self.offset += len(line)
            if not line:
                self._file.close()
                self._file = None
                self.document, self.offset = self.document + 1, 0
            elif not line.isspace():
                return position, line.decode("utf-8", errors="replace").rstrip()
        return None

    def at(self, position: Position) -> str:
        """Returns a line again."""
        document, offset = position
        with open_document(self._path, self.names[document]) as file:
            file.seek(offset)
            return read_line(file).decode("utf-8", errors="replace").rstrip()

    def close(self) -> None:
        """Closes the open document."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __getstate__(self) -> dict[str, Any]:
        # An open file can't be saved, and its position is known; names would be saved again and again.
        return {**self.__dict__, "_file": None, "_names": None}


class SentenceSpout(BaseRichSpout):
    """Emits the lines of a text as sentences, and emits failed ones again.

    Args:
        path: the file or folder to read; None for Python's documentation.
    """

    def __init__(self, path: str | None = None) -> None:
        self._path = path

    def open(self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector) -> None:
        self._collector = collector
        tasks = len(context.component_tasks(context.this_component_id))
        self.lines = Lines(self._path, context.this_task_index, tasks)
        self.failed: list[Position] = []
        self.ended = False

    def next_tuple(self) -> None:
        if self.failed:
            position = self.failed.pop()
            self._collector.emit([self.lines.at(position)], message_id=position)
        elif (found := self.lines.next()) is not None:
            position, sentence = found
            self._collector.emit([sentence], message_id=position)
        else:
            self.ended = True

    def fail(self, message_id: Position) -> None:
        self.failed.append(message_id)

    def exhausted(self) -> bool:
        return self.ended and not self.failed

    def close(self) -> None:
        self.lines.close()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sentence"))


class SplitSentence(BaseBasicBolt):
    """Emits the words of a sentence."""

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        for word in tup["sentence"].split():
            collector.emit([word])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("word"))


class WordCount(BaseBasicBolt):
    """Counts words."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.counts: Counter[str] = Counter()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        self.counts[tup["word"]] += 1


def build(conf: Mapping[str, Any]) -> Topology:
    """Returns the topology."""
    builder = TopologyBuilder()
    builder.set_spout("sentences", SentenceSpout(checked_input(conf)))
    builder.set_bolt("split", SplitSentence(), 2).shuffle_grouping("sentences")
    builder.set_bolt("count", WordCount(), conf.get(TASKS, 2)).fields_grouping("split", Fields("word"))
    return builder.create_topology()


def report(spark: SparkSession, checkpoint: str, info: TopologyInfo) -> list[dict[str, Any]]:
    """Returns the most frequent words: called after the run, with its checkpoint."""
    from storm_on_spark.spark.state import read_bolt_state

    counts: Counter[str] = Counter()
    for state in read_bolt_state(spark, checkpoint, "count").values():
        counts.update(state["counts"])
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"word": word, "count": count} for word, count in ordered[:_TOP]]


# --- the text ---------------------------------------------------------------------------------------------------------


def checked_input(conf: Mapping[str, Any], key: str = INPUT) -> str | None:
    """Returns the absolute path of the text to read, or None if none is configured.

    Args:
        conf: the configuration.
        key: the key with the path.

    Raises:
        ConfigError: it can't be read.
    """
    given = conf.get(key)
    if given is None:
        return None
    # Absolute, because a spout host may have another working directory.
    path = Path(str(given)).expanduser().absolute()
    if not path.exists():
        raise ConfigError(f"{key} names {str(given)!r}, which does not exist; give a file or a folder", key=key)
    try:
        names = documents(str(path))
        for name in names:
            open_document(str(path), name).close()
    except OSError as error:
        raise ConfigError(f"{key}: {error.filename} can't be read: {error.strerror}", key=key) from error
    if not names:
        raise ConfigError(f"{key} names {str(given)!r}, a folder without any files", key=key)
    return str(path)


def documents(path: str | None) -> tuple[str, ...]:
    """Returns the names of the documents: topics of Python's documentation, a file, or the files below a folder."""
    if path is None:
        from pydoc_data.topics import topics

        return tuple(sorted(topics))
    folder = Path(path)
    if not folder.is_dir():
        return (path,)
    return tuple(sorted(str(file) for file in folder.rglob("*") if file.is_file()))


def open_document(path: str | None, name: str) -> BinaryIO:
    """Opens one document."""
    if path is None:
        from pydoc_data.topics import topics

        return io.BytesIO(topics[name].encode())
    return Path(name).open("rb")


def read_line(file: BinaryIO) -> bytes:
    """Returns the next line, or as much of it as may be emitted at once; empty at the end of the file."""
    line = file.readline(MAX_LINE_BYTES)
    if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
        return line
    cut = max(line.rfind(blank) for blank in (b" ", b"\t", b"\r")) + 1
    if cut:
        file.seek(cut - len(line), io.SEEK_CUR)
        line = line[:cut]
    return line


if __name__ == "__main__":
    from storm_on_spark.spark.main import run_main

    run_main(build, conf, report)
