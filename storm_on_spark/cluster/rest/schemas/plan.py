"""The plan that a driver runs."""

from __future__ import annotations

from storm_on_spark.cluster.http.views import View


class RunningOperator(View, frozen=True, kw_only=True):
    """An operator of the plan that runs, as in `storm-spark explain --json`."""

    stages: tuple[int, ...]
    """Numbers of the stages that it executes."""
    exchange: bool
    state: bool
    source: str | None
    becomes: str


class RunningStage(View, frozen=True, kw_only=True):
    """A stage of the plan that runs, as in `storm-spark explain --json`."""

    index: int
    kind: str
    components: tuple[str, ...]


class RunningPlan(View, frozen=True, kw_only=True):
    """The plan that runs: the same fields and words as in `storm-spark explain --json`."""

    partitions: int
    operators: tuple[RunningOperator, ...]
    stages: tuple[RunningStage, ...]
