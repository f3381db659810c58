"""Fetches one artifact over HTTP from whoever has it: goes on where it was cut, with somebody else if need be."""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import httpx

from storm_on_spark.cluster.errors import ChecksumError, CodeError
from storm_on_spark.cluster.records import ArtifactInfo

_log = logging.getLogger(__name__)

_BLOCK = 1 << 18
ROUNDS = 4
"""So often everybody is asked in vain before it is given up; a round that brought something doesn't count."""
_PAUSE_SECS = 0.2
TIMEOUT = httpx.Timeout(10.0, connect=3.0)
"""Of one connection that brings nothing, so that a host that hangs is soon left for another."""


def client(headers: Mapping[str, str]) -> httpx.Client:
    """Returns a client for `Fetch`: it follows no redirects and uses no proxy."""
    return httpx.Client(
        headers={**headers, "Accept-Encoding": "identity"}, timeout=TIMEOUT, trust_env=False, follow_redirects=False
    )


@dataclass(frozen=True)
class Fetch:
    """What fetching needs.

    Attributes:
        http: of `client`.
        holders: addresses of those who have a topology's code; asked in every round.
        sleep: waits between rounds.
        shuffle: spreads the load over the holders.
    """

    http: httpx.Client
    holders: Callable[[str], Sequence[str]]
    sleep: Callable[[float], object]
    shuffle: Callable[[list[Any]], object]

    def artifact(self, topology_id: str, info: ArtifactInfo, path: Path) -> None:
        """Brings an artifact to `path`, beginning with what is there already.

        Raises:
            CodeError: nobody has it.
            ChecksumError: what they have is something else.
        """
        problems: list[str] = []
        wrong: list[str] = []
        with _opened(path) as file:
            if self._whole(file, info):
                return
            idle = 0
            while idle < ROUNDS:
                if idle:
                    self.sleep(_PAUSE_SECS * idle)
                holders = [address for address in dict.fromkeys(self.holders(topology_id)) if address not in wrong]
                self.shuffle(holders)
                before = _size(file)
                for address in holders:
                    try:
                        self._from(address, topology_id, info, file)
                    except (httpx.HTTPError, httpx.InvalidURL, _RefusedError) as error:
                        problems.append(f"{address}: {str(error) or type(error).__name__}")
                        _log.info("%s of %s from %s: %s", info.name, topology_id, address, problems[-1])
                    if _size(file) < info.size:
                        continue
                    if self._whole(file, info):
                        return
                    # Parts may be of several hosts; whoever gave the last is asked no more, and all is fetched again.
                    file.truncate(0)
                    wrong.append(address)
                    _log.warning("%s of %s from %s has a wrong checksum", info.name, topology_id, address)
                idle = 0 if _size(file) > before else idle + 1
        if wrong:
            raise ChecksumError(
                f"{info.name} of {topology_id}: what {', '.join(wrong)} gave has not the SHA-256 {info.sha256}"
            )
        tried = "; ".join(list(dict.fromkeys(problems))[-5:]) or "no live Nimbus has it"
        raise CodeError(f"{info.name} of {topology_id} can't be fetched: {tried}")

    def _from(self, address: str, topology_id: str, info: ArtifactInfo, file: IO[bytes]) -> None:
        start = file.seek(0, os.SEEK_END)
        headers = {"Range": f"bytes={start}-"} if start else {}
        with self.http.stream("GET", url_of(address, topology_id, info.name), headers=headers) as response:
            if response.status_code == 206 and start:
                found = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", response.headers.get("Content-Range", ""))
                if found is None or (int(found[1]), int(found[3])) != (start, info.size):
                    raise _RefusedError(f"Content-Range {response.headers.get('Content-Range', '')[:80]!r}")
            elif response.status_code == 200:
                file.truncate(0)
                start = file.seek(0)
            elif response.status_code == 416:
                file.truncate(0)
                raise _RefusedError("HTTP 416")
            else:
                raise _RefusedError(f"HTTP {response.status_code}")
            for block in response.iter_raw(_BLOCK):
                start += len(block)
                if start > info.size:
                    file.truncate(0)
                    raise _RefusedError(f"sent more than the {info.size:,} bytes that {info.name} has")
                file.write(block)
                file.flush()

    @staticmethod
    def _whole(file: IO[bytes], info: ArtifactInfo) -> bool:
        """Returns whether the file is complete and right; on disk too then."""
        if _size(file) != info.size:
            if _size(file) > info.size:
                file.truncate(0)
            return False
        file.seek(0)
        digest = hashlib.sha256()
        while block := file.read(_BLOCK):
            digest.update(block)
        os.fsync(file.fileno())
        return digest.hexdigest() == info.sha256


class _RefusedError(Exception):
    """A host answered, but not with what was asked for."""


def url_of(address: str, topology_id: str, name: str) -> str:
    """Returns where a Nimbus has an artifact.

    Raises:
        CodeError: the address is no `host:port`; it comes from ZooKeeper.

    Example:
        >>> url_of("nimbus-2:6627", "word-count-1-1700000000", "code.zip")
        'http://nimbus-2:6627/api/v1/code/word-count-1-1700000000/code.zip'
    """
    if not re.fullmatch(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}", address):
        raise CodeError(f"{address[:100]!r} is no address host:port of a Nimbus")
    return f"http://{address}/api/v1/code/{quote(topology_id, safe='')}/{quote(name, safe='')}"


def _opened(path: Path) -> IO[bytes]:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "r+b")


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size
