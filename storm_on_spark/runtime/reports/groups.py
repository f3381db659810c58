"""Groups of equal errors: their number, the time of the first, and the latest one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath

from storm_on_spark.api.text.traces import location
from storm_on_spark.runtime.reports.report import Failure

Key = tuple[str, str, tuple[str, int] | None]


def key_of(component: str, task: int | None, message: str, trace: str) -> Key:
    """Returns the key of equal errors: component, text, and line of user code.

    The file's folder is ignored, because each slot has its own folder of code.

    Example:
        >>> trace = '  File "/slots/6700/code/jobs.py", line 12, in execute'
        >>> key_of("count", 4, 'component "count" (task 4) failed in execute: KeyError: 1', trace)
        ('count', 'component "count" failed in execute: KeyError: 1', ('jobs.py', 12))
    """
    place = location(trace)
    where = None if place is None else (PurePath(place[0]).name, place[1])
    return component, message.replace(f" (task {task})", "", 1), where


@dataclass
class Group:
    """Equal errors.

    Args:
        failure: the last of them, with the last traceback and input that are known, and the count of all.
        first: when there was the first, in seconds since the epoch.
        last: when there was the last.
    """

    failure: Failure
    first: float
    last: float
    logged_at: float | None = None
    """When it was logged last, in monotonic seconds."""

    def to_log(self, now: float) -> Failure:
        """Returns the log entry at `now`: the whole error the first time, later only the count."""
        again, self.logged_at = self.logged_at is not None, now
        failure = self.failure
        if failure.times == 1:
            return failure
        since = f" since {datetime.fromtimestamp(self.first).astimezone():%H:%M:%S}" if again else ""
        failure = failure._replace(message=f"{failure.message} (x {failure.times:,}{since})")
        return failure._replace(trace="", own_trace="") if again else failure


class Groups:
    """A bounded number of groups.

    Args:
        most: maximum number of groups. Further ones are counted in `left_out`, or replace the oldest.
        forgets: whether new groups replace the oldest.

    Example:
        >>> groups = Groups(10)
        >>> for number in range(3):
        ...     group = groups.add(Failure("count", number, "KeyError: 1", input=f"({number},)"))
        >>> [(group.failure.times, group.failure.input) for group in groups]
        [(3, '(2,)')]
    """

    def __init__(self, most: int, *, forgets: bool = False) -> None:
        self._most = most
        self._forgets = forgets
        #: By key; the one that had an error last is the last.
        self._groups: dict[Key, Group] = {}
        #: Errors of groups that there was no room for.
        self.left_out = 0

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    def __len__(self) -> int:
        return len(self._groups)

    def knows(self, failure: Failure) -> bool:
        """Returns whether there is a group of such errors."""
        return self._key(failure) in self._groups

    def add(self, failure: Failure, at: float = 0.0) -> Group | None:
        """Adds errors; returns their group, or None if the limit is reached.

        Args:
            failure: an error, or as many equal ones as it counts.
            at: seconds since the epoch.
        """
        key = self._key(failure)
        known = self._groups.pop(key, None)
        if known is None:
            if len(self._groups) >= self._most:
                if not self._forgets:
                    self.left_out += failure.times
                    return None
                del self._groups[next(iter(self._groups))]
            known = Group(failure, at, at)
        else:
            before = known.failure
            known.failure = failure._replace(
                times=before.times + failure.times,
                trace=failure.trace or before.trace,
                own_trace=failure.own_trace or before.own_trace,
                input=failure.input or before.input,
            )
            known.last = at
        self._groups[key] = known
        return known

    def _key(self, failure: Failure) -> Key:
        key = key_of(failure.component, failure.task, failure.message, failure.own_trace)
        if key[2] is None:
            # Of many errors in a row only the first come with their traceback.
            return next((known for known in reversed(self._groups) if known[:2] == key[:2]), key)
        return key
