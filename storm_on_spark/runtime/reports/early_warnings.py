"""Early warnings about a topology, from one table of rules. Pure: facts in, sentences out.

Pages, REST, `/metrics` and `status` use this table, so they show the same warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from storm_on_spark.api.info import TopologyInfo

_LEAST_SECS: Final = 3.0
"""Over a shorter time growth says nothing."""
_LEAST_PENDING: Final = 1000
_GROWTH: Final = 1.2
_BUSY: Final = 0.9
_SLOW: Final = 0.8
"""Share of the message timeout."""
_LEAST_BYTES: Final = 64 << 20


@dataclass(frozen=True)
class Facts:
    """Facts about a topology at one moment. Rules that need an unknown fact give no warning."""

    info: TopologyInfo | None = None
    """What its driver said last."""
    before: TopologyInfo | None = None
    """What it said some seconds earlier."""
    seconds: float = 0.0
    """How many."""
    capacity: Mapping[str, float] = field(default_factory=dict)
    """Share of the time in which the executors of a bolt executed, by component."""
    message_timeout_secs: float | None = None
    """None if messages don't time out."""
    most_pending: int | None = None
    """Messages that may be pending at all its spout tasks together; None for no limit."""
    lag: Mapping[str, int] = field(default_factory=dict)
    """Tuples that wait in the log of a spout, by component; see `with_load`."""
    lag_before: Mapping[str, int] = field(default_factory=dict)
    state_bytes: int | None = None
    """Memory of state stores."""
    state_bytes_before: int | None = None
    load_secs: float = 0.0
    """How much earlier what waited, and state, were as said in the fields whose names end in `before`."""
    replicas: int | None = None
    """Nimbuses that have its code; None without a cluster."""
    replicas_wanted: int = 0
    heartbeats_unknown: str = ""
    """Why nothing is known of its driver's heartbeats."""
    beat_age_secs: float | None = None
    """How old its driver's last heartbeat is."""
    beat_timeout_secs: float = 30.0
    waits: str = ""
    """Why it has no slot."""


@dataclass(frozen=True)
class EarlyWarning:
    """A warning."""

    rule: str
    """The name of its rule."""
    text: str
    """What was seen, as a sentence."""
    advice: str
    """What to look at."""
    component: str = ""
    """Which component it is about; empty for the whole topology."""


@dataclass(frozen=True)
class Rule:
    """A rule."""

    name: str
    meaning: str
    advice: str
    found: Callable[[Facts], Iterator[tuple[str, str]]]
    """Yields component and sentence for each case."""


def early_warnings(facts: Facts) -> list[EarlyWarning]:
    """Returns the warnings of all rules, in the order of the table.

    Example:
        >>> facts = Facts(replicas=1, replicas_wanted=2, capacity={"count": 0.97, "split": 0.1})
        >>> [(warning.rule, warning.component) for warning in early_warnings(facts)]
        [('capacity', 'count'), ('code', '')]
    """
    return [EarlyWarning(rule.name, text, rule.advice, name) for rule in RULES for name, text in rule.found(facts)]


def with_load(facts: Facts, tasks: Mapping[str, Iterable[int]]) -> Facts:
    """Returns facts with what the topology's driver says of the growth of its backlog and its state.

    Args:
        facts: without these.
        tasks: component -> its tasks; what waits for tasks that are in none counts for the whole topology.

    Example:
        >>> from storm_on_spark.api.info import GrowthInfo, LoadInfo
        >>> growth = GrowthInfo(540.0, {1: 1500, 2: 1500}, {1: 500, 2: 500})
        >>> info = TopologyInfo("t", "ACTIVE", 900.0, load=LoadInfo(growth=growth))
        >>> [(each.component, each.text) for each in early_warnings(with_load(Facts(info), {"lines": (1, 2)}))]
        [('lines', '3,000 tuples wait in its log, 2,000 more than 540 s before')]
    """
    load = None if facts.info is None else facts.info.load
    growth = None if load is None else load.growth
    if growth is None:
        return facts
    owner = {task: name for name, own in tasks.items() for task in own}
    lag: dict[str, int] = {}
    before: dict[str, int] = {}
    for task, waiting in growth.backlog.items():
        name = owner.get(task, "")
        lag[name] = lag.get(name, 0) + waiting
        before[name] = before.get(name, 0) + growth.backlog_before.get(task, 0)
    return replace(
        facts,
        lag=lag,
        lag_before=before,
        state_bytes=growth.state_bytes,
        state_bytes_before=growth.state_bytes_before,
        load_secs=growth.secs,
    )


def _failed(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.info is not None and facts.info.status == "FAILED":
        yield "", f"the topology has failed: {facts.info.error or 'see its errors'}"


def _waits(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.waits:
        yield "", f"the topology waits for a slot: {facts.waits}"


def _backlog(facts: Facts) -> Iterator[tuple[str, str]]:
    for name, lag in facts.lag.items():
        earlier = facts.lag_before.get(name)
        if earlier is not None and lag >= _LEAST_PENDING and lag > earlier * _GROWTH:
            where = "its log" if name else "the logs of spouts"
            yield name, f"{lag:,} tuples wait in {where}, {lag - earlier:,} more than {facts.load_secs:.0f} s before"
    info, before = facts.info, facts.before
    if info is None or before is None or facts.seconds < _LEAST_SECS:
        return
    if info.pending >= _LEAST_PENDING and info.pending > before.pending * _GROWTH:
        more = info.pending - before.pending
        yield "", f"{info.pending:,} messages are pending, {more:,} more than {facts.seconds:.0f} s before"


def _capacity(facts: Facts) -> Iterator[tuple[str, str]]:
    for name, share in facts.capacity.items():
        if share >= _BUSY:
            yield name, f"its executors were busy for {100 * share:.0f} % of the time"


def _time_outs(facts: Facts) -> Iterator[tuple[str, str]]:
    info, before = facts.info, facts.before
    if info is None:
        return
    if before is not None:
        bolts = [name for name, part in info.components.items() if not part.kind.endswith("spout")]
        earlier = {name: part.failed for name, part in before.components.items()}
        by_bolts = sum(info.components[name].failed - earlier.get(name, 0) for name in bolts)
        timed_out = info.failed - before.failed - max(0, by_bolts)
        if timed_out > 0:
            yield "", f"about {timed_out:,} messages timed out within {facts.seconds:.0f} s"
            return
    slowest = (info.complete_latency_ms or {}).get("p99")
    if slowest is not None and facts.message_timeout_secs and slowest > 1e3 * _SLOW * facts.message_timeout_secs:
        yield (
            "",
            f"the slowest messages take {slowest / 1e3:.1f} s; they time out after {facts.message_timeout_secs:g} s",
        )


def _checkpoint(facts: Facts) -> Iterator[tuple[str, str]]:
    now, before = facts.state_bytes, facts.state_bytes_before
    if now is not None and before is not None and now >= _LEAST_BYTES and now > before * _GROWTH:
        yield (
            "",
            f"its state takes {now >> 20:,} MB, {(now - before) >> 20:,} MB more than {facts.load_secs:.0f} s before",
        )


def _code(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.replicas is not None and facts.replicas < facts.replicas_wanted:
        yield "", f"{facts.replicas} of {facts.replicas_wanted} Nimbuses have its code"


def _heartbeats(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.heartbeats_unknown:
        yield "", f"nothing is known of heartbeats: {facts.heartbeats_unknown}"
    elif facts.beat_age_secs is not None and facts.beat_age_secs > facts.beat_timeout_secs / 2:
        yield "", f"the driver's last heartbeat is {facts.beat_age_secs:.0f} s old"


def _blocked(facts: Facts) -> Iterator[tuple[str, str]]:
    info, most = facts.info, facts.most_pending
    if info is not None and info.status == "ACTIVE" and most and info.pending >= most:
        yield "", f"spouts wait for acks: {info.pending:,} messages are pending, and {most:,} may be"


RULES: Final = (
    Rule("failed", "The topology has failed.", "See its error and its log.", _failed),
    Rule("slot", "The topology waits for a slot.", "Start a supervisor, or kill a topology.", _waits),
    Rule(
        "backlog",
        "Pending messages grow by a fifth or more within the time looked at, or tuples that wait in a spout's log do "
        "within ten minutes.",
        "Look for the bolt with the highest load, and give it more executors; or lower topology.max.spout.pending.",
        _backlog,
    ),
    Rule(
        "capacity",
        "A bolt's executors were busy for 90 % of the time or more.",
        "Give the bolt more executors, or make its execute method faster.",
        _capacity,
    ),
    Rule(
        "time-outs",
        "Messages time out, or take more than 80 % of topology.message.timeout.secs.",
        "Look for the slow bolt; lower topology.max.spout.pending; or raise topology.message.timeout.secs.",
        _time_outs,
    ),
    Rule(
        "checkpoint",
        "State, which is in the checkpoint, takes 64 MB or more, and grows by a fifth or more within ten minutes.",
        "See which bolt's state grows; state that is never removed grows for ever.",
        _checkpoint,
    ),
    Rule(
        "code",
        "Fewer Nimbuses than wanted have the topology's code.",
        "Start the missing Nimbuses: a Nimbus without the code can't lead.",
        _code,
    ),
    Rule(
        "heartbeats",
        "Nothing is known of the driver's heartbeats, or the last one is old.",
        "See whether ZooKeeper and Pacemakers answer, and the driver's log.",
        _heartbeats,
    ),
    Rule(
        "spout",
        "As many messages are pending as topology.max.spout.pending allows, so spouts wait.",
        "That is how Storm limits itself; if it lasts, look for the slow bolt.",
        _blocked,
    ),
)
"""The table of rules."""
