"""The owner of a checkpoint: a fence that needs no server.

A driver that has lost its connection to ZooKeeper keeps running. When another one is given its topology, the two share
nothing but the checkpoint; so its owner stands there, in `storm/owner.json`. A driver that takes a checkpoint over
writes itself down first, and checks regularly that the file still names it. Epochs order the owners: one that slept
since it was allowed to start comes too late (a fencing token, as in Chubby's sequencers).
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from storm_on_spark.api.errors import CheckpointError
from storm_on_spark.runtime.processes.lock_file import locked, open_lock
from storm_on_spark.runtime.processes.sessions import session_members, this_kernel
from storm_on_spark.runtime.storage.durable import make_folder, write_file
from storm_on_spark.spark.checkpoint.location import local_directory

VERSION = 1
_FOLDER = "storm"
_MAX_BYTES = 1 << 14
_POLL_SECS = 0.05


@dataclass(frozen=True)
class Owner:
    """The owner of a checkpoint.

    Example:
        >>> old, new = Owner("count-1-1700000000", 7, "a"), Owner("count-1-1700000000", 9, "b")
        >>> old.precedes(new), new.precedes(old), new.precedes(Owner("count-2-1700000009", 3, "c"))
        (True, False, True)
    """

    scope: str
    """The topology's id: epochs are counted per topology, and start again with another topology."""
    epoch: int
    """Grows with every owner of the scope, whatever host it is on."""
    token: str
    """Tells this owner from all others, also from itself before a restart."""
    kernel: str = ""
    """The machine and process table of its processes, as `this_kernel` returns them; empty if unknown."""
    session: int = 0
    """The session of its processes: they may outlive the driver for a moment, and write to the checkpoint."""
    started: str = ""
    """When the leader of that session was started, as `started_at` says."""

    def precedes(self, other: Owner) -> bool:
        """Whether `other` may take the checkpoint over from this one."""
        return self.scope != other.scope or self.token == other.token or self.epoch < other.epoch


class Fence(Protocol):
    """Notices when an owner is no longer the owner of its checkpoint."""

    def lost(self) -> str | None:
        """Returns why the owner must stop; None while it may continue."""
        ...


class OwnerFence:
    """Makes `owner` the owner of a checkpoint, and notices when it no longer is.

    Args:
        checkpoint: the directory, or a `file:` URI of one.
        owner: the new owner.
        now: monotonic clock in seconds.
        sleep: waits for seconds.

    Raises:
        CheckpointError: the checkpoint can't be written, or has a newer owner.
    """

    def __init__(
        self,
        checkpoint: str | os.PathLike[str],
        owner: Owner,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._checkpoint = local_directory(checkpoint)
        self._folder = self._checkpoint / _FOLDER
        self._file = self._folder / "owner.json"
        self._now = now
        self._sleep = sleep
        self.former: Owner | None = None
        """The previous owner, if it did not release the checkpoint."""
        #: Whether the file held something else than an owner: then there may be one that can't be named.
        self._unknown_former = False
        try:
            make_folder(self._folder, sync=True)
            with self._alone():
                self._write(owner)
        except OSError as error:
            raise CheckpointError(
                f"checkpoint {self._checkpoint} can't be written: {error.strerror or error}"
            ) from error
        self._claimed_at = now()

    def await_former(self, grace_secs: float, patience_secs: float) -> None:
        """Waits until the former owner has noticed that it was replaced.

        On this machine, its processes can be seen to end; elsewhere it is given time to look, as locks don't reach
        other machines.

        Args:
            grace_secs: how long an owner on another machine has to notice, counted from the claim.
            patience_secs: how long to wait for what can be seen of it, counted from now.

        Raises:
            CheckpointError: the former owner still runs after that.
        """
        former = self.former
        here = former is not None and former.kernel != "" and former.kernel == this_kernel()
        if self._unknown_former or (former is not None and not here):
            while (remaining := self._claimed_at + grace_secs - self._now()) > 0:
                self._sleep(min(remaining, _POLL_SECS))
        deadline = self._now() + patience_secs
        while not self._lock_is_free() or (
            former is not None and here and former.session and session_members(former.session, former.started)
        ):
            if self._now() > deadline:
                raise CheckpointError(
                    f"checkpoint {self._checkpoint} is in use: the topology's former driver did not end within "
                    f"{patience_secs:.0f} s"
                )
            self._sleep(_POLL_SECS)

    def renew(self, epoch: int) -> None:
        """Writes the owner down with a later epoch.

        Raises:
            CheckpointError: another driver owns the checkpoint now.
        """
        with self._alone():
            reason = self.lost()
            if reason is not None:
                raise CheckpointError(reason)
            self._write(replace(self.owner, epoch=epoch))

    def lost(self) -> str | None:
        """Returns why the owner must stop; None while it may continue.

        The file is opened each time: network file systems promise only then to show what another host wrote.
        """
        try:
            content = self._read()
        except FileNotFoundError:
            return f"checkpoint {self._checkpoint} has no owner any more: {self._file.name} was removed"
        except OSError:
            return None  # Unknown; code that needs the checkpoint raises its own error.
        if content == self._content:
            return None
        other = _parsed(content)
        if other is not None and other.token == self.owner.token:
            return None
        by = "another driver" if other is None else f"a driver of {other.scope} with epoch {other.epoch}"
        return f"checkpoint {self._checkpoint} was taken over by {by}"

    def release(self) -> None:
        """Releases the checkpoint, so that the next owner doesn't wait."""
        with contextlib.suppress(OSError), self._alone():
            if self.lost() is None:
                self._file.unlink()

    def _write(self, owner: Owner) -> None:
        content: bytes | None = None
        with contextlib.suppress(FileNotFoundError):
            content = self._read()
        before = None if content is None else _parsed(content)
        if before is not None and not before.precedes(owner):
            raise CheckpointError(
                f"checkpoint {self._checkpoint} has a newer owner: epoch {before.epoch} of {before.scope}, "
                f"this driver has {owner.epoch}"
            )
        if before is not None and before.token != owner.token:
            self.former = before
        self._unknown_former = content is not None and before is None
        self.owner = owner
        self._content = json.dumps({"version": VERSION, **asdict(owner)}).encode()
        # Owners must keep their order also if the machine dies.
        write_file(self._file, self._content, sync=True, temporary=f"owner-{owner.token}.tmp")

    def _read(self) -> bytes:
        with self._file.open("rb") as file:
            return file.read(_MAX_BYTES)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps other claims of this machine out, or a late one could win between our look and our writing."""
        path = self._folder / "owner.lock"
        try:
            descriptor = locked(path, wait=True)
        except OSError:
            descriptor = open_lock(path)  # a file system without locks: epochs still order the owners
        try:
            yield
        finally:
            os.close(descriptor)

    def _lock_is_free(self) -> bool:
        path = self._folder / "lock"
        try:
            descriptor = locked(path)
        except BlockingIOError:
            return False
        except OSError:
            descriptor = open_lock(path)  # a file system without locks has none that is taken
        os.close(descriptor)
        return True


def _parsed(content: bytes) -> Owner | None:
    try:
        data = json.loads(content)
        if data.pop("version") != VERSION:
            return None
        owner = Owner(**data)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    texts, numbers = (owner.scope, owner.token, owner.kernel, owner.started), (owner.epoch, owner.session)
    right = all(isinstance(text, str) for text in texts) and all(isinstance(number, int) for number in numbers)
    return owner if right else None
