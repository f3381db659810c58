"""A client that polls every Nimbus: are reads answered, and how soon?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final

import httpx

_PAGES: Final = ("cluster/summary", "nimbus/summary", "supervisor/summary", "topology/summary")
_PAUSE_SECS: Final = 0.02
_TIMEOUT_SECS: Final = 5.0


@dataclass(frozen=True)
class Read:
    """One read."""

    at: float
    address: str
    secs: float
    answered: bool
    stale: bool = False


class Reads:
    """Reads from all Nimbuses in turn, until the end of the context.

    Args:
        addresses: returns those of the running Nimbuses. A missing answer counts only if its Nimbus is still among them
            afterwards.
    """

    def __init__(self, addresses: Callable[[], list[str]]) -> None:
        self._addresses = addresses
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="failover-reads", daemon=True)
        self.done: list[Read] = []

    def __enter__(self) -> Reads:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def unanswered(self) -> list[Read]:
        """Those without an answer."""
        return [read for read in self.done if not read.answered]

    def _run(self) -> None:
        with httpx.Client(trust_env=False, timeout=_TIMEOUT_SECS) as client:
            number = 0
            while not self._ended.wait(_PAUSE_SECS):
                for address in self._addresses():
                    number += 1
                    self._ask(client, address, _PAGES[number % len(_PAGES)])

    def _ask(self, client: httpx.Client, address: str, page: str) -> None:
        at, began = time.time(), time.monotonic()
        try:
            response = client.get(f"http://{address}/api/v1/{page}")
            answered, stale = response.is_success, bool(response.json().get("stale"))
        except (httpx.HTTPError, ValueError):
            answered = stale = False
        if answered or address in self._addresses():
            self.done.append(Read(at, address, time.monotonic() - began, answered, stale))
