"""A topology's life: the commands that each status allows, and the status that follows.

                    activate          deactivate        rebalance          kill
    ACTIVE          ACTIVE            INACTIVE          REBALANCING        KILLED
    INACTIVE        ACTIVE            INACTIVE          REBALANCING        KILLED
    REBALANCING     refused           refused           refused            KILLED
    KILLED          refused           refused           refused            KILLED, waiting again

KILLED and REBALANCING carry a `Transition`: when its wait is over, `finish` says what follows. The statuses and what
leads from one to another are Storm's (`TopologyStateTransition` and `Nimbus` of Storm 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from storm_on_spark.api.config import validate_conf
from storm_on_spark.api.errors import ConfigError, InvalidTopologyError
from storm_on_spark.cluster.errors import TransitionError
from storm_on_spark.cluster.records import StormBase, Transition
from storm_on_spark.runtime.run.settings import TrackingSettings
from storm_on_spark.runtime.samples.switch import changed, checked_percent

_MOST_WAIT_SECS = 10 * 365 * 86400
_FIXED = ("topology.checkpoint.dir", "topology.name", "storm.id")
"""Keys that a rebalance can't change: with other values it would be another topology."""


def activate(base: StormBase) -> StormBase:
    """Lets a topology's spouts emit.

    Raises:
        TransitionError: it is being killed or rebalanced.
    """
    return _switched(base, "activate")


def deactivate(base: StormBase) -> StormBase:
    """Stops a topology's spouts from emitting.

    Raises:
        TransitionError: it is being killed or rebalanced.
    """
    return _switched(base, "deactivate")


def sample(base: StormBase, component: str, percent: float) -> StormBase:
    """Samples a share of the tuples of a component, or of all for an empty name; 0 for none.

    Raises:
        TransitionError: it is being killed, or that is not a percentage.
    """
    if base.status == "KILLED":
        raise TransitionError(f'can\'t sample tuples of topology "{base.name}": it is KILLED')
    try:
        return replace(base, debug=changed(base.debug, component, checked_percent(percent)))
    except ValueError as error:
        raise TransitionError(f'topology "{base.name}": {error}') from error


def kill(base: StormBase, now: float, wait_secs: float | None = None) -> StormBase:
    """Ends a topology: its spouts stop at once, and when the wait is over it is removed.

    Args:
        base: the topology; it may be in any status. A second kill restarts the wait, from now on.
        now: seconds since the epoch.
        wait_secs: how long what was emitted may take; the message timeout for None, as in Storm.

    Raises:
        TransitionError: the wait makes no sense.
    """
    wait = _wait(base, wait_secs)
    previous = base.status if base.transition is None else base.transition.previous
    return replace(base, status="KILLED", transition=Transition(kind="kill", due_at=now + wait, previous=previous))


def rebalance(
    base: StormBase,
    now: float,
    wait_secs: float | None = None,
    conf: Mapping[str, Any] | None = None,
    executors: Mapping[str, int] | None = None,
    tasks: Mapping[str, int] | None = None,
) -> StormBase:
    """Restarts a topology's driver after the wait, with other settings and maybe in another slot.

    Args:
        base: the topology.
        now: seconds since the epoch.
        wait_secs: how long what was emitted may take; the message timeout for None, as in Storm.
        conf: configuration to change; None as a value means the default again.
        executors: component -> executors, from 1 to its number of tasks.
        tasks: component -> tasks, of all components. Needed with `executors` only.

    Raises:
        TransitionError: it is being killed or rebalanced already.
        ConfigError: the configuration makes no sense, or can't change.
        InvalidTopologyError: there is no such component, or it has fewer tasks.
    """
    if base.transition is not None:
        raise _refused(base, "rebalance")
    changes = dict(conf or {})
    validate_conf(changes, f'rebalance of topology "{base.name}"')
    for key in _FIXED:
        if key in changes and changes[key] != base.conf.get(key):
            raise ConfigError(f'rebalance of topology "{base.name}": {key} can\'t change while it lives', key=key)
    wanted = dict(executors or {})
    for component, count in wanted.items():
        _check_executors(base, component, count, tasks or {})
    due_at = now + _wait(base, wait_secs)
    transition = Transition(kind="rebalance", due_at=due_at, previous=base.status, conf=changes, executors=wanted)
    return replace(base, status="REBALANCING", transition=transition)


def finish(base: StormBase, now: float) -> StormBase | None:
    """Returns what follows a transition: the topology as it continues, or None when it is to be removed.

    Args:
        base: a topology; one without a transition that is due is returned as it is.
        now: seconds since the epoch.
    """
    transition = base.transition
    if transition is None or now < transition.due_at:
        return base
    if transition.kind == "kill":
        return None
    conf = {**base.conf, **transition.conf}
    return replace(
        base,
        status=transition.previous,
        launch=base.launch + 1,
        conf={key: value for key, value in conf.items() if value is not None},
        executors={**base.executors, **transition.executors},
        transition=None,
    )


def _switched(base: StormBase, action: str) -> StormBase:
    if base.transition is not None:
        raise _refused(base, action)
    return replace(base, status="ACTIVE" if action == "activate" else "INACTIVE")


def _refused(base: StormBase, action: str) -> TransitionError:
    return TransitionError(f'can\'t {action} topology "{base.name}": it is {base.status}, not ACTIVE or INACTIVE')


def _wait(base: StormBase, wait_secs: float | None) -> float:
    if wait_secs is None:
        return float(TrackingSettings.of(base.conf).timeout_secs)
    if not 0 <= wait_secs <= _MOST_WAIT_SECS:
        raise TransitionError(f'topology "{base.name}": can\'t wait {wait_secs} s, only 0 to {_MOST_WAIT_SECS}')
    return wait_secs


def _check_executors(base: StormBase, component: str, count: int, tasks: Mapping[str, int]) -> None:
    if component not in tasks:
        known = ", ".join(f'"{name}"' for name in sorted(tasks)) or "unknown"
        raise InvalidTopologyError(
            f'topology "{base.name}" has no component "{component}"; its components: {known}', component=component
        )
    if not 1 <= count <= tasks[component]:
        raise InvalidTopologyError(
            f'component "{component}" of topology "{base.name}" can have 1 to {tasks[component]} executors, as many as '
            f"tasks, not {count}",
            component=component,
        )
