"""Fetches one artifact over HTTP from any host that has it; resumes after an interruption, also from another host."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import httpx

from storm_on_spark.cluster.errors import ChecksumError, CodeError
from storm_on_spark.cluster.records import ArtifactInfo
from storm_on_spark.cluster.security.tls import Scheme, Tls

_log = logging.getLogger(__name__)

_BLOCK = 1 << 18
ROUNDS = 4
"""Rounds without success before a fetch is given up; a round that brought something doesn't count."""
_PAUSE_SECS = 0.2
TIMEOUT = httpx.Timeout(10.0, connect=3.0)
"""Of one connection that brings nothing, so that a host that hangs is soon left for another."""


def client(auth: httpx.Auth | None = None, tls: Tls | None = None) -> httpx.Client:
    """Returns a client for `Fetch`: it follows no redirects and uses no proxy.

    Args:
        auth: proves the requests.
        tls: how it knows servers.
    """
    return httpx.Client(
        headers={"Accept-Encoding": "identity"},
        auth=auth,
        verify=True if tls is None else tls.verify,
        timeout=TIMEOUT,
        trust_env=False,
        follow_redirects=False,
    )


@dataclass(frozen=True)
class Fetch:
    """What fetching needs.

    Attributes:
        http: of `client`.
        holders: addresses of the Nimbuses that have a topology's code; asked in every round.
        sleep: waits between rounds.
        shuffle: spreads the load over the holders.
        stopped: set when the result is no longer wanted.
        scheme: of the URLs.
    """

    http: httpx.Client
    holders: Callable[[str], Sequence[str]]
    sleep: Callable[[float], object]
    shuffle: Callable[[list[Any]], object]
    stopped: threading.Event
    scheme: Scheme = "http"

    def artifact(self, topology_id: str, info: ArtifactInfo, path: Path) -> None:
        """Brings an artifact to `path`, beginning with what is there already.

        Raises:
            CodeError: no Nimbus has it.
            ChecksumError: what they have is something else.
        """
        problems: list[str] = []
        wrong: list[str] = []
        with _opened(path) as file:
            part = _Part(file, info)
            if part.right():
                return
            idle = 0
            while idle < ROUNDS:
                if idle:
                    self.sleep(_PAUSE_SECS * idle)
                holders = [address for address in dict.fromkeys(self.holders(topology_id)) if address not in wrong]
                self.shuffle(holders)
                before = part.size
                for address in holders:
                    self._check_wanted(topology_id, info)
                    if self._ask(address, topology_id, part, problems, wrong):
                        return
                idle = 0 if part.size > before else idle + 1
        if wrong:
            raise ChecksumError(
                f"{info.name} of {topology_id}: what {', '.join(wrong)} sent does not have the SHA-256 {info.sha256}"
            )
        tried = "; ".join(list(dict.fromkeys(problems))[-5:]) or "no live Nimbus has it"
        raise CodeError(f"{info.name} of {topology_id} can't be fetched: {tried}")

    def _check_wanted(self, topology_id: str, info: ArtifactInfo) -> None:
        if self.stopped.is_set():
            raise CodeError(f"{info.name} of {topology_id} can't be fetched: the distributor was closed")

    def _ask(self, address: str, topology_id: str, part: _Part, problems: list[str], wrong: list[str]) -> bool:
        """Asks one host for what is missing; returns whether the artifact is complete and right then."""
        for _ in range(2):
            try:
                self._append(address, topology_id, part)
            except CodeError:
                raise
            # RuntimeError is how httpx says that the client was closed.
            except (httpx.HTTPError, httpx.InvalidURL, _RefusedError, RuntimeError) as error:
                problems.append(f"{address}: {str(error) or type(error).__name__}")
                _log.info("%s of %s from %s", part.info.name, topology_id, problems[-1])
            if part.size < part.info.size:
                return False
            if part.right():
                return True
            alone = part.givers == {address}
            part.restart()
            if alone:
                wrong.append(address)
                _log.warning("%s of %s from %s has a wrong checksum", part.info.name, topology_id, address)
                return False
            # The part from another host may be damaged: this host is asked for the whole artifact.
        return False

    def _append(self, address: str, topology_id: str, part: _Part) -> None:
        start, size = part.size, part.info.size
        url = url_of(address, topology_id, part.info.name, self.scheme)
        if url is None:
            raise _RefusedError("expected an address host:port")
        headers = {"Range": f"bytes={start}-"} if start else {}
        with self.http.stream("GET", url, headers=headers) as response:
            if response.status_code == 206 and start:
                given = response.headers.get("Content-Range", "")
                found = re.fullmatch(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18})", given)
                if found is None or (int(found[1]), int(found[2])) != (start, size):
                    raise _RefusedError(f"Content-Range is {given[:80]!r}; it must begin at byte {start:,} of {size:,}")
            elif response.status_code == 200:
                part.restart()
            else:
                if response.status_code == 416:
                    part.restart()
                raise _RefusedError(f"HTTP {response.status_code}")
            # As it comes, in pieces of no set size: all that arrived before a cut is kept.
            for block in response.iter_raw():
                if part.size + len(block) > size:
                    part.restart()
                    raise _RefusedError(f"sent more than the {size:,} bytes that {part.info.name} has")
                part.append(block, address)
                self._check_wanted(topology_id, part.info)


class _Part:
    """What is there of an artifact.

    Attributes:
        info: of the whole.
        size: bytes that are there.
        givers: who gave them; None is for those of an earlier attempt.
    """

    def __init__(self, file: IO[bytes], info: ArtifactInfo) -> None:
        self._file = file
        self.info = info
        self.size = file.seek(0, os.SEEK_END)
        self.givers: set[str | None] = {None} if self.size else set()
        if self.size > info.size or (self.size == info.size and not self.right()):
            self.restart()

    def append(self, block: bytes, giver: str) -> None:
        self._file.seek(self.size)
        self._file.write(block)
        self._file.flush()
        self.size += len(block)
        self.givers.add(giver)

    def restart(self) -> None:
        self._file.truncate(0)
        self.size = 0
        self.givers.clear()

    def right(self) -> bool:
        if self.size != self.info.size:
            return False
        self._file.seek(0)
        digest = hashlib.sha256()
        while block := self._file.read(_BLOCK):
            digest.update(block)
        return digest.hexdigest() == self.info.sha256


class _RefusedError(Exception):
    """A host answered, but not with what was asked for."""


def url_of(address: str, topology_id: str, name: str, scheme: Scheme = "http") -> str | None:
    """Returns where a Nimbus has an artifact; None if the address, which comes from ZooKeeper, is not a `host:port`.

    Example:
        >>> url_of("nimbus-2:6627", "word-count-1-1700000000", "code.zip")
        'http://nimbus-2:6627/api/v1/code/word-count-1-1700000000/code.zip'
    """
    if not re.fullmatch(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}", address):
        return None
    return f"{scheme}://{address}/api/v1/code/{quote(topology_id, safe='')}/{quote(name, safe='')}"


def _opened(path: Path) -> IO[bytes]:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "r+b")
