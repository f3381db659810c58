"""Native spouts that can read without Spark: in real time the spout's task reads the rows, otherwise Spark does.

Never both: the topology's checkpoint says who reads, and from which position on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Reader:
    """The reader of a native spout's rows."""

    change: int = 0
    """How often the reader has changed, of all runs on the checkpoint."""
    by_task: bool = False
    """Whether the spout's task reads, and not Spark."""
    start: str | None = None
    """The position from which the task reads, as in Spark's offset log; None to begin as for the first time."""
    planned: bool = False
    """Whether Spark had planned a micro-batch with rows in front of that position, and not committed it."""
    moving_to: str | None = None
    """The position that is being written into Spark's offset log; None if that is whole."""


class ReadsItself(ABC):
    """The part of a `NativeSpout` whose task can read the rows in place of Spark.

    Positions are texts, as Spark's source has them in its offset log. They are read from the disk: what makes no sense
    raises a `ValueError` that says so.
    """

    @property
    @abstractmethod
    def only_spark_because(self) -> str:
        """Why only Spark can read the rows, as a clause; empty if the task can."""

    @abstractmethod
    def read_nothing(self, spark: SparkSession) -> DataFrame:
        """Returns what `read` returns, with a source that gives no new rows: the task reads them.

        A micro-batch that Spark planned before has its rows.
        """

    @abstractmethod
    def read_by(self, reader: Reader) -> None:
        """Called before `open`: says who reads."""

    @abstractmethod
    def reached(self) -> tuple[int, str | None]:
        """Returns how far the task has read, once it is open and its state is restored.

        Returns:
            The change of reader with which it began to read, and its position; None if it has read nothing.
        """

    @abstractmethod
    def moved(self, position: str | None, to: str) -> str:
        """Returns a position of Spark's source, with the parts of another one in place of its own.

        Raises:
            ValueError: one of them is no position.
        """

    @abstractmethod
    def position_in(self, begun: bytes) -> str:
        """Returns the position in the file in which Spark's source keeps where it began.

        Raises:
            ValueError: it has another format.
        """

    @abstractmethod
    def begun_at(self, position: str) -> bytes:
        """Returns the content of such a file."""
