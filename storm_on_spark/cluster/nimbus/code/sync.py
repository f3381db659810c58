"""Brings the code of every topology to this Nimbus, at once, and tells the others that it is here.

Changes in ZooKeeper wake it; every `nimbus.code.sync.freq.secs` it looks without being woken. A fetch that fails is
tried again after a pause that doubles up to that period, or as soon as another Nimbus has the code.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from storm_on_spark.cluster.code.distributor import CodeDistributor
from storm_on_spark.cluster.errors import ClusterError, ConflictError, UnavailableError
from storm_on_spark.cluster.paths import CODE, STORMS, SUBMISSIONS
from storm_on_spark.cluster.records import CodeManifest
from storm_on_spark.cluster.state import ClusterSnapshot, ClusterState, ClusterView, Code

logger = logging.getLogger(__name__)

_FETCHES: Final = 4
"""At the same time: one host that hangs doesn't keep the rest waiting."""
_FIRST_PAUSE_SECS: Final = 0.5
_LOOK_AGAIN_SECS: Final = 1.0
_WAKING: Final = frozenset({CODE, STORMS, SUBMISSIONS})


class CodeSync:
    """Keeps the code that is here in step with what is in ZooKeeper.

    Args:
        distributor: what fetches.
        state: where Nimbuses register the code they have.
        view: what there is.
        address: of this Nimbus.
        period: seconds between looks without a change in ZooKeeper.
        is_busy: whether a topology's code is being taken in at this moment, so that ZooKeeper can't know of it.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        distributor: CodeDistributor,
        state: ClusterState,
        view: ClusterView,
        address: str,
        period: float,
        is_busy: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._distributor = distributor
        self._state = state
        self._view = view
        self._address = address
        self._period = period
        self._is_busy = is_busy
        self._clock = clock
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._pool = ThreadPoolExecutor(_FETCHES, "fetch-code")
        self._lock = threading.Lock()
        #: What is being fetched; changes under the lock.
        self._fetching: dict[str, Future[None]] = {}
        #: By topology: not before when to try again, the pause after that, and who had it at the last attempt.
        self._failed: dict[str, tuple[float, float, frozenset[str]]] = {}
        self._unknown_since: dict[str, float] = {}
        self._remove_callback: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="code-sync", daemon=True)

    def start(self) -> None:
        """Starts looking."""
        self._remove_callback = self._view.on_change(lambda folders: self._wake.set() if folders & _WAKING else None)
        self._thread.start()

    def close(self) -> None:
        """Stops; a fetch that is under way is waited for, or cut by closing the distributor before."""
        self._remove_callback()
        self._stopped.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def wake(self) -> None:
        """Makes it look now."""
        self._wake.set()

    def missing(self, topologies: Iterable[str], code: Mapping[str, CodeManifest]) -> list[str]:
        """Returns the ids of those topologies whose code this Nimbus doesn't have, sorted."""
        return sorted(
            topology
            for topology in topologies
            if topology not in code or not self._distributor.holds(topology, code[topology].metafile)
        )

    def fetch(self, topologies: Iterable[str]) -> None:
        """Tries once to fetch the code of these topologies now; returns when every attempt has ended."""
        code = self._view.snapshot().code
        futures = [self._begin(topology, code[topology]) for topology in topologies if topology in code]
        for future in futures:
            if future is not None:
                future.exception()

    def _run(self) -> None:
        pause = 0.0
        while not self._stopped.is_set():
            self._wake.wait(pause)
            self._wake.clear()
            if self._stopped.is_set():
                return
            pause = self._period
            try:
                pause = self._look(self._view.snapshot())
            except UnavailableError as error:
                logger.info("Can't register at the moment which code this Nimbus has: %s", error)
                pause = _LOOK_AGAIN_SECS
            except Exception:
                logger.exception("Looking for missing code failed")
                pause = _LOOK_AGAIN_SECS

    def _look(self, snapshot: ClusterSnapshot) -> float:
        """Does what is due, and returns the seconds until something is due again."""
        now = self._clock()
        pause = self._period
        coming = {submission.topology_id for submission in snapshot.submissions.values()}
        for topology, code in snapshot.code.items():
            if not snapshot.knows(topology) and topology not in coming:
                # It is being removed.
                continue
            here = self._distributor.holds(topology, code.manifest.metafile)
            listed = self._address in code.replicas
            if here and not listed:
                self._tell(topology)
            elif not here:
                if listed:
                    self._state.delete_ephemeral(CODE, topology, self._address)
                pause = min(pause, self._try(topology, code, now))
        for topology in set(self._failed) - snapshot.code.keys():
            self._failed.pop(topology, None)
        if self._view.stale is None:
            pause = min(pause, self._remove_unknown(snapshot, coming, now))
        return max(0.05, pause)

    def _try(self, topology: str, code: Code, now: float) -> float:
        not_before, pause, holders = self._failed.get(topology, (0.0, _FIRST_PAUSE_SECS, frozenset()))
        if now >= not_before or code.replicas - holders:
            self._begin(topology, code)
            return pause
        return not_before - now

    def _begin(self, topology: str, code: Code) -> Future[None] | None:
        with self._lock:
            future = self._fetching.get(topology)
            if future is None and not self._stopped.is_set():
                future = self._fetching[topology] = self._pool.submit(self._fetch, topology, code)
            return future

    def _fetch(self, topology: str, code: Code) -> None:
        try:
            began = self._clock()
            self._distributor.fetch(topology, code.manifest.metafile)
            logger.info("Code of %s is here, after %.2f s", topology, self._clock() - began)
            self._failed.pop(topology, None)
            self._tell(topology)
        except ClusterError as error:
            _, pause, _ = self._failed.get(topology, (0.0, _FIRST_PAUSE_SECS, frozenset[str]()))
            self._failed[topology] = (self._clock() + pause, min(2 * pause, self._period), code.replicas)
            logger.warning("Code of %s is missing here: %s", topology, error)
        except Exception:
            self._failed[topology] = (self._clock() + self._period, self._period, code.replicas)
            logger.exception("Fetching the code of %s failed", topology)
        finally:
            with self._lock:
                self._fetching.pop(topology, None)
            self._wake.set()

    def _tell(self, topology: str) -> None:
        try:
            self._state.create_ephemeral(b"", CODE, topology, self._address)
        except ConflictError:
            logger.info("%s was removed while its code was fetched", topology)

    def _remove_unknown(self, snapshot: ClusterSnapshot, coming: set[str], now: float) -> float:
        """Removes code that has had no record for a whole period; returns when to look again."""
        if self._distributor.shared:
            # The leader's to clean.
            return self._period
        if snapshot.unread(SUBMISSIONS):
            # The owner of that code can't be determined.
            return self._period
        known = {*snapshot.code, *snapshot.unread(CODE), *snapshot.storms, *snapshot.unread(STORMS)}
        unknown = {topology for topology in self._distributor.stored() if topology not in known}
        unknown = {topology for topology in unknown if not self._is_busy(topology)}
        self._unknown_since = {name: self._unknown_since.get(name, now) for name in unknown - coming}
        pause = self._period
        for topology, since in self._unknown_since.items():
            remaining = since + self._period - now
            if remaining <= 0:
                logger.info("Removing the code of %s: the topology no longer exists", topology)
                self._distributor.cleanup(topology)
            else:
                pause = min(pause, remaining)
        return pause
