"""The common base of the testers of bolts and spouts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Generic, TypeVar

from storm_on_spark.api.component import BaseComponent
from storm_on_spark.api.errors import ComponentError
from storm_on_spark.api.task.context import TopologyContext
from storm_on_spark.runtime.run.spec import RunSpec
from storm_on_spark.runtime.state.snapshot import Snapshots
from storm_on_spark.testing.components.bench import Bench

B = TypeVar("B", bound=BaseComponent)
T = TypeVar("T", bound="Tester[Any]")


class Tester(ABC, Generic[B]):
    """A component under test: an instance, its snapshots and a fresh start."""

    def __init__(self, instance: B, bench: Bench) -> None:
        self._instance = instance
        self._bench = bench
        self._shipped: RunSpec | ComponentError
        try:
            # Before `open` or `prepare`, which may add attributes that can't be pickled.
            self._shipped = bench.spec()
        except ComponentError as error:
            self._shipped = error
        self._closed = False
        #: The last arguments of `open` or `prepare`.
        self._context = bench.context()

    def __enter__(self: T) -> T:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def context(self) -> TopologyContext:
        """The context given to `open` or `prepare`; a different one after `restart`."""
        return self._context

    @abstractmethod
    def close(self) -> None:
        """Ends the component's life, once."""

    def saved_bytes(self) -> int:
        """Returns the bytes of attributes that a micro-batch would save now; 0 for a stateless bolt.

        Raises:
            ComponentError: the attributes can't be pickled.

        Example:
            >>> from storm_on_spark.testing import ListSpout, SpoutTester
            >>> with SpoutTester(ListSpout(["to be", "or not"])) as tester:
            ...     tester.saved_bytes() < 1000
            True
        """
        return 0 if self._bench.stateless else len(self._snapshots().take())

    def _reborn(self) -> tuple[B, bytes | None]:
        """Returns a fresh copy of the component, and the state for it."""
        if isinstance(self._shipped, ComponentError):
            raise self._shipped
        state = None if self._bench.stateless else self._snapshots().take()
        instance: B = self._shipped.instance(self._bench.name)
        return instance, state

    def _restore(self, state: bytes | None) -> None:
        if state is not None:
            self._snapshots().restore(state)

    def _snapshots(self) -> Snapshots:
        name = f"component {self._bench.name!r} (task {self._bench.task})"
        return Snapshots(self._instance, name, (self._context,))
