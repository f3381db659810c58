"""Requests that prove knowledge of the token without carrying it.

A server gives out challenges, good for a few minutes and for itself only. A request answers one:

    Authorization: Storm-HMAC challenge="...", nc=00000001, body="<SHA-256>", mac="<HMAC-SHA256>"

The signature is over method, path and query, challenge, count and body, with a key that is derived from the token. Each
count of a challenge serves once. So a receiver or listener of a request learns nothing with which to sign another: it
can pass on this very request, once. The body of an upload is left out (`body="unsigned"`), for it is read while it
is sent; the request that submits what was uploaded names its checksums.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Generator, Mapping
from typing import Final

import httpx

from storm_on_spark.cluster.security.addresses import is_loopback
from storm_on_spark.cluster.security.tokens import Tokens, derived, mac

SCHEME: Final = "Storm-HMAC"
UNSIGNED: Final = "unsigned"
_PURPOSE: Final = "requests"
_CHALLENGE: Final = re.compile(rf'{SCHEME} challenge="([0-9A-Za-z.]{{1,200}})"', re.IGNORECASE)
_ASK: Final = "/api/v1/challenge"
"""No resource has this path; a client that must prove itself gets a challenge in the answer."""
_MOST_SERVERS: Final = 1000


def proof(token: str, method: str, target: str, challenge: str, count: str, body: str) -> str:
    """Returns the signature of a request.

    Args:
        token: one of the cluster's.
        method: of the request.
        target: its path and query, as they are sent.
        challenge: of the server.
        count: how often the challenge was used, as 8 hexadecimal digits.
        body: SHA-256 of its body in hexadecimal digits, or `unsigned`.
    """
    return mac(derived(token, _PURPOSE), "request", method, target, challenge, count, body)


def challenge_header(challenge: str) -> str:
    """Returns the value of `WWW-Authenticate` that asks for a proof."""
    return f'{SCHEME} challenge="{challenge}"'


class TokenAuth(httpx.Auth):
    """Proves each request of an `httpx.Client`. Any thread may use it.

    A server's challenge is used until the server wants another. A server that sends no challenge gets no proof.

    Args:
        tokens: the cluster's; the first one signs.
        loopback_only: whether requests to other hosts go without a proof.
    """

    def __init__(self, tokens: Tokens, *, loopback_only: bool = False) -> None:
        self._tokens = tokens
        self._loopback_only = loopback_only
        self._lock = threading.Lock()
        #: Server -> its challenge and how often it was used; changes under the lock.
        self._known: dict[str, tuple[str, int]] = {}

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Yields the request with its proof; before it a question for a challenge, where there is none."""
        if self._loopback_only and not is_loopback(request.url.host):
            yield request
            return
        server = f"{request.url.scheme}://{request.url.netloc.decode('ascii', 'replace')}"
        body = _body_of(request)
        used = self._use(server)
        if used is None or body == UNSIGNED:
            # What is read while it is sent can't be sent twice: its challenge has to be a new one.
            answer = yield httpx.Request("GET", request.url.copy_with(path=_ASK, query=None, fragment=None))
            used = self._learn(server, answer)
        if used is None:
            yield request
            return
        answer = yield self._signed(request, used, body)
        if answer.status_code == 401 and body != UNSIGNED:
            used = self._learn(server, answer)
            if used is not None:
                yield self._signed(request, used, body)

    def _signed(self, request: httpx.Request, used: tuple[str, int], body: str) -> httpx.Request:
        challenge, count = used[0], f"{used[1]:08x}"
        target = request.url.raw_path.decode("ascii", "replace")
        signature = proof(self._tokens.first, request.method, target, challenge, count, body)
        request.headers["Authorization"] = (
            f'{SCHEME} challenge="{challenge}", nc={count}, body="{body}", mac="{signature}"'
        )
        return request

    def _use(self, server: str) -> tuple[str, int] | None:
        with self._lock:
            if server not in self._known:
                return None
            challenge, count = self._known[server]
            self._known[server] = used = (challenge, count + 1)
            return used

    def _learn(self, server: str, answer: httpx.Response) -> tuple[str, int] | None:
        found = _CHALLENGE.search(answer.headers.get("WWW-Authenticate", ""))
        with self._lock:
            if answer.status_code != 401 or found is None:
                self._known.pop(server, None)
                return None
            if len(self._known) >= _MOST_SERVERS:
                self._known.clear()
            self._known[server] = used = (found[1], 1)
            return used


def _body_of(request: httpx.Request) -> str:
    try:
        return hashlib.sha256(request.content).hexdigest()
    except httpx.RequestNotRead:
        return UNSIGNED


def auth_of(tokens: Tokens | None) -> TokenAuth | None:
    """Returns what proves requests; None where there is no secret."""
    return None if tokens is None else TokenAuth(tokens)


def parameters(text: str) -> Mapping[str, str]:
    """Returns the parameters of a value of `Authorization`, by name in lower case."""
    return {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(text[:4096])}


# Not within a word or a value: a search from each of their characters takes time by the square of their length.
_PARAMETER = re.compile(r'(?<![^\s,])([a-z]+)=(?:"([^"\\]*)"|([^\s,"]+))(?:,|$)\s*', re.IGNORECASE)
