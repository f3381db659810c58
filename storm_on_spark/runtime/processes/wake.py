"""A thread's rest, which other threads end, or what comes in on a socket."""

from __future__ import annotations

import contextlib
import os
import select
import threading


class Wake:
    """As `threading.Event`, for one thread that waits, which may also wait for descriptors.

    There are two kinds of descriptors: what the thread itself reads, and what others read that it calls, such as a
    spout. While it doesn't call them it must not wait for theirs: they would stay ready.

    Example:
        >>> wake = Wake()
        >>> wake.set()
        >>> wake.wait(60.0)
        True
        >>> wake.clear()
        >>> wake.wait(0.001)
        False
        >>> wake.close()
    """

    def __init__(self) -> None:
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll, self._poll_all = select.poll(), select.poll()
        for poll in (self._poll, self._poll_all):
            poll.register(self._out, select.POLLIN)
        #: Whether a byte is in the pipe, or about to be.
        self._set = False
        #: Whether the last wait found one.
        self._rang = False
        #: Held to write and to close: after it is closed, another file may have the pipe's number.
        self._lock = threading.Lock()
        self._closed = False
        self._watched: int | None = None
        #: Those of others.
        self._others: set[int] = set()

    def set(self) -> None:
        """Ends the current wait, or the next one; without effect once this is closed."""
        if not self._set:
            with self._lock:
                if not self._closed:
                    self._set = True
                    os.write(self._in, b"!")

    def clear(self) -> None:
        """Forgets what was set; call it before looking for what it was set for."""
        if self._set or self._rang:
            with contextlib.suppress(BlockingIOError):  # another thread is about to write it
                os.read(self._out, 64)
            # Not before the byte is read: without one, nobody would wake this thread.
            self._set = self._rang = False

    def watch(self, descriptor: int | None) -> None:
        """Waits also for something to read from a descriptor, in place of any before; None for no more."""
        for poll in (self._poll, self._poll_all):
            if self._watched is not None:
                poll.unregister(self._watched)
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        self._watched = descriptor

    def watch_others(self, descriptor: int) -> None:
        """Waits also for something to read from a descriptor that others read."""
        self._others.add(descriptor)
        self._poll_all.register(descriptor, select.POLLIN)

    def unwatch_others(self, descriptor: int) -> None:
        """Forgets such a descriptor, if it is known."""
        if descriptor in self._others:
            self._others.remove(descriptor)
            self._poll_all.unregister(descriptor)

    def wait(self, secs: float, *, others: bool = True) -> bool:
        """Waits at most this long; in whole milliseconds.

        Args:
            secs: how long.
            others: whether others' descriptors end it as well.

        Returns:
            Whether anything ended it before.
        """
        ready = (self._poll_all if others else self._poll).poll(1000 * secs)
        self._rang = any(descriptor == self._out for descriptor, _ in ready)
        return bool(ready)

    def close(self) -> None:
        """Closes its own descriptors."""
        with self._lock:
            self._closed = True
            os.close(self._out)
            os.close(self._in)
