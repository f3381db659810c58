"""The owner of a checkpoint in a store, which has no locks.

Each owner has a claim in `storm/owners/`, with its own number; the greatest one counts. An owner writes a beat
into its claim now and then. A start that wants the checkpoint first checks whether the owner still beats: then the
checkpoint is in use. If it stands still, it is taken over, and an owner that had only been frozen finds a greater claim
when it wakes. Until then it may write: what it writes bears its own number, which no later owner reads.

No clock is compared with another machine's.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.processes.sessions import started_at, this_kernel
from storm_on_spark.runtime.storage import Storage
from storm_on_spark.runtime.storage.claims import Claim, claims_in, make_claim, read_claim, successor, write_claim
from storm_on_spark.spark.checkpoint.owner import Owner

_log = logging.getLogger(__name__)

_LOOK_SECS = 1.0
_BEAT_LOOKS = 3
"""An owner writes a heartbeat at one look in this many."""
_STALE_SECS = 3.0
"""An owner whose last look is older, for example because it was frozen, looks before it does anything."""
_SILENT_SECS = 12.0
"""An owner that does not renew its claim within this time counts as dead."""
_POLL_SECS = 0.5


class StoreFence:
    """Makes `owner` the owner of a checkpoint, and notices when it no longer is.

    Args:
        storage: the folder of the claims.
        checkpoint: for messages.
        owner: the new owner. An owner with a lower epoch of the same scope is replaced, one with a greater one is not.
        now: monotonic clock in seconds.
        sleep: waits for seconds.

    Raises:
        CheckpointError: the checkpoint can't be written, is in use, or has a newer owner.
    """

    def __init__(
        self,
        storage: Storage,
        checkpoint: str,
        owner: Owner,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._storage = storage
        self._checkpoint = checkpoint
        self._now, self._sleep = now, sleep
        self.owner = owner
        self.former: Owner | None = None
        """The previous owner, if it did not release the checkpoint."""
        self._lost: str | None = None
        self._beat = 0
        self._looked = now()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        try:
            self._await_silence()
            self.claim, before = make_claim(storage, owner.token, self._about(), sleep)
            self._check_order(before)
            self._tidy(before)
        except OSError as error:
            raise CheckpointError(f"checkpoint {checkpoint} can't be written: {error.strerror or error}") from error

    @property
    def number(self) -> int:
        """The owner's number: greater than those of all owners before."""
        return self.claim.number

    def await_former(self, grace_secs: float, patience_secs: float) -> None:
        """Gives a former owner that did not give the checkpoint back the time to notice that it was replaced.

        Args:
            grace_secs: how long that may take.
            patience_secs: not needed: nothing of it can be seen.
        """
        if self.former is not None:
            self._sleep(grace_secs)

    def watch(self) -> None:
        """Starts the thread that beats, and checks that the claim still counts."""
        self._thread = threading.Thread(target=self._watch, name="checkpoint-owner", daemon=True)
        self._thread.start()

    def lost(self) -> str | None:
        """Returns why the owner must stop; None while no reason is known."""
        if self._lost is None and self._now() - self._looked > _STALE_SECS:
            self.look()
        return self._lost

    def look(self) -> str | None:
        """Looks at the claims, and returns why the owner must stop; None while it may continue."""
        try:
            at = self._now()
            later = successor(self._storage, self.claim)
            self._looked = at
            if later is not None and self._lost is None:
                about = _owner(read_claim(self._storage, later))
                known = about is not None and about.epoch
                by = f"a driver of {about.scope} with epoch {about.epoch}" if about and known else "another driver"
                self._lost = f"checkpoint {self._checkpoint} was taken over by {by}"
        except OSError as error:
            # Unknown; code that needs the checkpoint raises its own error.
            _log.debug("the owner of %s can't be looked up: %s", self._checkpoint, error)
        return self._lost

    def beat(self) -> None:
        """Shows that the owner is alive, unless it has been replaced."""
        if self._lost is None:
            self._beat += 1
            with contextlib.suppress(OSError):
                write_claim(self._storage, self.claim, self._about())

    def release(self) -> None:
        """Releases the checkpoint, so that the next owner doesn't wait."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self.look() is None:
            with contextlib.suppress(OSError):
                write_claim(self._storage, self.claim, self._about(released=True))

    def _watch(self) -> None:
        looks = 0
        while not self._stopping.wait(_LOOK_SECS):
            looks += 1
            if self.look() is not None:
                return
            if looks % _BEAT_LOOKS == 0:
                self.beat()

    def _await_silence(self) -> None:
        """Waits until the present owner is known to be dead, or is to be replaced.

        Raises:
            CheckpointError: it lives.
        """
        claims = claims_in(self._storage.list_folder())
        if not claims:
            return
        last, beat, since = claims[-1], self._read(claims[-1]), self._now()
        while True:
            about = _owner(beat)
            if about is not None and not about.precedes(self.owner):
                raise self._too_late(about)
            if beat is None or beat.get("released") is True:
                return
            self.former = about
            if about is not None:
                if about.scope == self.owner.scope and about.epoch < self.owner.epoch:
                    return  # The leader of the cluster has decided that this start is the owner.
                if about.kernel and about.kernel == this_kernel():
                    if about.started and started_at(about.session) == about.started:
                        raise self._in_use(f"process {about.session} on this machine")
                    return
            if self._now() - since > _SILENT_SECS:
                return
            self._sleep(_POLL_SECS)
            seen = self._read(last)
            if seen != beat and seen is not None and seen.get("released") is not True:
                raise self._in_use("a driver on another machine, which is alive")
            beat = seen

    def _read(self, claim: Claim) -> dict[str, Any] | None:
        return read_claim(self._storage, claim)

    def _in_use(self, by: str) -> CheckpointError:
        return CheckpointError(
            f"checkpoint {self._checkpoint} is in use by a running topology ({by}); stop that, or choose another place"
        )

    def _too_late(self, other: Owner) -> CheckpointError:
        return CheckpointError(
            f"checkpoint {self._checkpoint} has a newer owner: epoch {other.epoch} of {other.scope}, this driver has "
            f"{self.owner.epoch}"
        )

    def _check_order(self, before: list[Claim]) -> None:
        for claim in reversed(before):
            other = _owner(read_claim(self._storage, claim))
            if other is not None and not other.precedes(self.owner):
                # Our claim has a higher number. It says that it is released, so no start waits for it.
                write_claim(self._storage, self.claim, self._about(released=True))
                raise self._too_late(other)

    def _tidy(self, before: list[Claim]) -> None:
        for claim in before:
            self._storage.delete(str(claim))

    def renew(self, epoch: int) -> None:
        """Writes the owner down with a later epoch.

        Raises:
            CheckpointError: another driver owns the checkpoint now.
        """
        reason = self.look()
        if reason is not None:
            raise CheckpointError(reason)
        self.owner = replace(self.owner, epoch=epoch)
        self.beat()

    def _about(self, *, released: bool = False) -> dict[str, object]:
        return {**asdict(self.owner), "beat": self._beat, "released": released}


def _owner(about: dict[str, Any] | None) -> Owner | None:
    """Returns the owner that a claim describes; None if it is unknown."""
    try:
        fields = Owner.__dataclass_fields__
        owner = Owner(**{name: value for name, value in (about or {}).items() if name in fields})
    except TypeError:
        return None
    texts, numbers = (owner.scope, owner.token, owner.kernel, owner.started), (owner.epoch, owner.session)
    right = all(isinstance(text, str) for text in texts) and all(isinstance(number, int) for number in numbers)
    return owner if right else None
