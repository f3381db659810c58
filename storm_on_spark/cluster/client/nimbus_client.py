"""Asks a cluster of Nimbuses: any of them to show something, the leader to change something."""

from __future__ import annotations

import contextlib
import getpass
import itertools
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from storm_on_spark.api.config import validate_conf
from storm_on_spark.api.errors import NotAliveError, StormError
from storm_on_spark.api.info import ALL_TIME, check_window
from storm_on_spark.cluster.client.answers import Json, KeptLog, LogPart, error_of, json_of, kept_logs_of, log_part_of
from storm_on_spark.cluster.client.operations import Operations
from storm_on_spark.cluster.client.paths import has_port, own_name, path_part, wait_part
from storm_on_spark.cluster.client.retry import Retry
from storm_on_spark.cluster.client.settings import ClientSettings
from storm_on_spark.cluster.code.checksums import artifacts_of
from storm_on_spark.cluster.errors import ConflictError, NotLeaderError, UnavailableError
from storm_on_spark.cluster.http.guard import BEHALF
from storm_on_spark.cluster.nimbus.accepting.submission import SubmissionState, SubmitRequest, name_of
from storm_on_spark.cluster.security.proofs import TokenAuth
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tls import Tls
from storm_on_spark.cluster.security.tokens import Tokens
from storm_on_spark.cluster.security.user_token import auth_of_client
from storm_on_spark.runtime.processes.closing import Closing

Progress = Callable[["SubmitProgress"], object]

_TIMEOUT: Final = httpx.Timeout(30.0, connect=5.0)
_UPLOAD_SECS: Final = 600.0
_POLL_SECS: Final = (0.02, 0.05, 0.1, 0.2)
"""Between questions how far a submission is; the last again and again."""
_MOST_MISSED: Final = 10
"""Polls until a submission that no Nimbus knows is sent again."""
_MOST_HOPS: Final = 5
"""From one Nimbus to the next that is said to lead; leadership moves, but not in circles."""
_BLOCK: Final = 1 << 20


class SubmitProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The current step of a submission."""

    phase: Literal["uploading", "replicating", "submitted"]
    topology_id: str = ""
    artifact: str = ""
    sent: int = 0
    """Bytes of all artifacts."""
    size: int = 0
    replicas: int = 0
    wanted: int = 0
    warnings: tuple[str, ...] = ()
    """The cluster's message about it."""


class NimbusClient(Operations, Closing):
    """A client of a cluster. It follows the leader, and tries again while leadership changes.

    Args:
        conf: where the Nimbuses are (`nimbus.seeds`, `nimbus.thrift.port`), how often to try
            (`storm.nimbus.retry.*`), the file with the token (`nimbus.auth.token.file`) and that with the CA
            (`storm.tls.ca.file`), where there are such. Nimbuses on loopback get the user's own token if none is named.
        seeds: `host:port` of Nimbuses, in the place of the configuration's.
        token: in the place of the configuration's. It proves the requests, and is never sent.
        auth: name and password of a user, in the place of a token.
        sleep: waits between attempts.
        clock: monotonic seconds.
        behalf: for whom it asks, as the list of changes shows it; the user of this process for None.

    Example:
        >>> with NimbusClient({"nimbus.seeds": ["nimbus-1", "nimbus-2:7000"]}) as client:    # doctest: +SKIP
        ...     client.topologies()
        []
    """

    def __init__(
        self,
        conf: Mapping[str, Any] | None = None,
        *,
        seeds: Sequence[str] | None = None,
        token: str | None = None,
        auth: tuple[str, str] | None = None,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        behalf: str | None = None,
    ) -> None:
        conf = dict(conf or {})
        validate_conf(conf, "client")
        settings, security = ClientSettings.of(conf), SecuritySettings.of(conf)
        named = seeds or settings.seeds or ClientSettings.of({}).seeds
        self.seeds = tuple(seed if has_port(seed) else f"{seed}:{settings.port}" for seed in named)
        self._retry = Retry.of(settings)
        self._sleep = sleep
        self._clock = clock
        proves: httpx.Auth | None
        if auth is not None:
            proves = httpx.DigestAuth(*auth)
        elif token is not None:
            proves = TokenAuth(Tokens((token,)))
        else:
            proves = auth_of_client(security, self.seeds)
        self._tls = Tls.of_client(security)
        self._http = httpx.Client(
            auth=proves,
            verify=self._tls.verify,
            timeout=_TIMEOUT,
            trust_env=False,
            follow_redirects=False,
            headers={BEHALF: quote(own_name() if behalf is None else behalf)},
        )
        self._leader: str | None = None

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    # Reading: any Nimbus.

    def page(self, path: str) -> Json:
        """Returns what a Nimbus answers to `GET /api/v1<path>`, whole: with whether it is stale."""
        return self._get(path)

    def cluster(self) -> Json:
        """Returns `cluster/summary`."""
        return self._get("/cluster/summary")

    def nimbuses(self) -> list[Json]:
        """Returns the Nimbuses of `nimbus/summary`."""
        return list(self._get("/nimbus/summary")["nimbuses"])

    def supervisors(self) -> list[Json]:
        """Returns the supervisors of `supervisor/summary`."""
        return list(self._get("/supervisor/summary")["supervisors"])

    def topologies(self) -> list[Json]:
        """Returns the topologies of `topology/summary`."""
        return list(self._get("/topology/summary")["topologies"])

    def topology(self, name: str, window: str = ALL_TIME) -> Json:
        """Returns `topology/:id` of a topology.

        Args:
            name: its name or id.
            window: one of Storm's: `600`, `10800`, `86400` or `:all-time`.

        Raises:
            NotAliveError: there is none.
        """
        return self._get(f"/topology/{path_part(self.topology_id(name))}?window={check_window(window)}")

    def component(self, name: str, component: str) -> Json:
        """Returns `topology/:id/component/:component`."""
        return self._get(f"/topology/{path_part(self.topology_id(name))}/component/{path_part(component)}")

    def errors(self, name: str) -> dict[str, list[Json]]:
        """Returns the last errors of a topology by component, oldest first."""
        return dict(self._get(f"/topology/{path_part(self.topology_id(name))}/errors")["errors"])

    def log(self, link: str, start: int, length: int = _BLOCK) -> LogPart:
        """Returns a part of the log of a driver.

        Args:
            link: the `logLink` of a topology.
            start: first byte; negative counts from the end.
            length: most bytes.

        Raises:
            NotAliveError: there is no such log.
            UnavailableError: the supervisor's host doesn't answer.
        """
        link, address = self._over_tls(link), urlsplit(link).netloc
        try:
            response = self._http.get(f"{link}&start={start}&length={length}")
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise UnavailableError(f"the supervisor at {address} doesn't answer: {error}") from error
        if not response.is_success:
            raise error_of(response, address)
        return log_part_of(response, link)

    def _over_tls(self, link: str) -> str:
        """Returns a link as it is to be asked: it says where, but whether over TLS is not its to say."""
        return urlsplit(link)._replace(scheme=self._tls.scheme).geturl()

    def kept_logs(self, topology: str) -> list[KeptLog]:
        """Returns the logs that hosts have kept of a topology, also after its removal, the newest first.

        Args:
            topology: its id, or a name: then the logs of all that had it.

        Raises:
            UnavailableError: no supervisor answers.
        """
        found: list[KeptLog] = []
        silent: list[str] = []
        links = [link for row in self.supervisors() if (link := str(row.get("workerLogsLink") or ""))]
        for link in links:
            try:
                found += self.logs_at(link, topology)
            except UnavailableError as error:
                silent.append(str(error))
        if silent and len(silent) == len(links):
            raise UnavailableError(f"no supervisor answers: {'; '.join(silent)}")
        return sorted(found, key=lambda each: -each.modified)

    def logs_at(self, link: str, topology: str) -> list[KeptLog]:
        """Returns the logs that one host has kept, of a topology or, for an empty text, of all.

        Args:
            link: `workerLogsLink` of its supervisor.
            topology: an id or a name.

        Raises:
            UnavailableError: the supervisor doesn't answer.
        """
        link, address = self._over_tls(link), urlsplit(link).netloc
        try:
            response = self._http.get(link, params={"topology": topology})
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise UnavailableError(f"{address}: {error}") from error
        if not response.is_success:
            raise error_of(response, address)
        return kept_logs_of(response, link)

    def topology_id(self, name: str) -> str:
        """Returns the id of a topology, given its name or its id.

        Raises:
            NotAliveError: there is none.
        """
        page = self._get("/topology/summary")
        rows = list(page["topologies"])
        for key in ("name", "id"):
            for row in rows:
                if row[key] == name:
                    return str(row["id"])
        for topology_id in page.get("unreadable", {}):
            # A caller that asks for it gets the reason why it can't be read.
            if name in (topology_id, name_of(topology_id)):
                return str(topology_id)
        known = ", ".join(sorted(row["name"] for row in rows)) or "none"
        raise NotAliveError(f"there is no topology {name!r}; there are: {known}")

    # Changing: the leader.

    def activate(self, name: str) -> None:
        """Lets a topology's spouts emit."""
        self._change(name, "activate")

    def deactivate(self, name: str) -> None:
        """Stops a topology's spouts from emitting."""
        self._change(name, "deactivate")

    def kill(self, name: str, wait_secs: float | None = None) -> None:
        """Ends a topology, when what it emitted has had `wait_secs` to get done (None: its message timeout)."""
        self._change(name, f"kill/{wait_part(wait_secs)}")

    def rebalance(
        self,
        name: str,
        wait_secs: float | None = None,
        *,
        workers: int | None = None,
        executors: Mapping[str, int] | None = None,
        conf: Mapping[str, Any] | None = None,
        from_scratch: bool = False,
    ) -> None:
        """Restarts a topology, with other executors and configuration and maybe elsewhere.

        Args:
            name: the topology's name or id.
            wait_secs: how long what it emitted has to get done; its message timeout for None.
            workers: `topology.workers` from now on.
            executors: component -> executors.
            conf: configuration to change.
            from_scratch: whether it forgets its state.
        """
        options = {"numWorkers": workers, "executors": dict(executors or {})}
        body: Json = {"rebalanceOptions": options, "conf": dict(conf or {})}
        if from_scratch:
            body["fromScratch"] = True
        self._change(name, f"rebalance/{wait_part(wait_secs)}", body)

    def submit(
        self,
        folder: Path,
        name: str,
        conf: Mapping[str, Any] | None = None,
        *,
        active: bool = True,
        owner: str | None = None,
        progress: Progress = lambda step: None,
        timeout: float | None = None,
    ) -> str:
        """Submits a topology and returns when it is in: no death of a Nimbus can lose it from then on.

        While the leader changes, everything is sent again, to the new one, under the same key.

        Args:
            folder: its artifacts, as `storm_on_spark.cluster.code.packing.bundle.pack` makes them.
            name: of the topology.
            conf: its configuration, without secrets; those are in the artifacts.
            active: whether its spouts emit from the start.
            owner: whose it is; the user of this process for None.
            progress: told what happens.
            timeout: longest wait for copies of the code, in seconds; None for no limit but the topology's own.

        Returns:
            Its id.

        Raises:
            AlreadyAliveError: there is a topology of that name.
            UnavailableError: no leader could be found, or the timeout is over; the submission may still come about.
        """
        artifacts = artifacts_of(folder)
        request = SubmitRequest(
            key=uuid.uuid4().hex,
            name=name,
            conf=dict(conf or {}),
            owner=getpass.getuser() if owner is None else owner,
            initial_status="ACTIVE" if active else "INACTIVE",
            artifacts=artifacts,
        )
        deadline = None if timeout is None else self._clock() + timeout
        pauses = self._retry.pauses(random.random)
        while True:
            try:
                self._send(request, folder, progress)
                found = self._await(request.key, progress, deadline)
                if found is not None:
                    return found.topology_id
                reason: StormError = UnavailableError(f"the submission of {name!r} was lost when the leader failed")
            except (UnavailableError, ConflictError) as error:
                reason = error
            pause = next(pauses, None)
            if pause is None or (deadline is not None and self._clock() > deadline):
                raise reason
            self._sleep(pause)

    def _send(self, request: SubmitRequest, folder: Path, progress: Progress) -> None:
        size = sum(info.size for info in request.artifacts)
        sent = 0

        def content(path: Path) -> Iterator[bytes]:
            nonlocal sent
            with path.open("rb") as file:
                while block := file.read(_BLOCK):
                    yield block
                    sent += len(block)
                    progress(SubmitProgress(phase="uploading", artifact=path.name, sent=sent, size=size))

        if self._known(request.key) is not None:
            # An attempt whose answer got lost: nothing need be sent, unless the leader has nothing of it.
            with contextlib.suppress(ConflictError):
                self._leader_request("POST", "/topology/submit", json=request)
                return
        for info in request.artifacts:
            path = f"/submission/{request.key}/{path_part(info.name)}"
            before = sent

            def stream(info_name: str = info.name, start: int = before) -> Iterator[bytes]:
                nonlocal sent
                sent = start
                return content(folder / info_name)

            self._leader_request("PUT", path, stream=stream)
        self._leader_request("POST", "/topology/submit", json=request)

    def _await(self, key: str, progress: Progress, deadline: float | None) -> SubmissionState | None:
        """Returns the submission when it is accepted; None if no Nimbus knows it or has its code."""
        missed = 0
        for pause in itertools.chain(_POLL_SECS, itertools.repeat(_POLL_SECS[-1])):
            state = self._known(key)
            # The Nimbus that answers may be a moment behind the one that took it in.
            missed = missed + 1 if state is None or (state.step != "submitted" and not state.replicas) else 0
            if missed > _MOST_MISSED:
                return None
            if state is not None:
                phase: Literal["replicating", "submitted"] = "submitted" if state.step == "submitted" else "replicating"
                progress(
                    SubmitProgress(
                        phase=phase,
                        topology_id=state.topology_id,
                        replicas=state.replicas,
                        wanted=state.wanted,
                        warnings=state.warnings,
                    )
                )
                if state.step == "submitted":
                    return state
            if deadline is not None and self._clock() > deadline:
                raise UnavailableError(f"submission {key} is not complete yet; it continues without this client")
            self._sleep(pause)
        raise AssertionError("the pauses have no end")

    def _known(self, key: str) -> SubmissionState | None:
        try:
            return msgspec.convert(self._get(f"/submission/{key}"), SubmissionState)
        except NotAliveError:
            return None

    # Requests.

    def ui_link(self) -> str:
        """Returns a link that logs in one browser to the pages of a Nimbus, once.

        Raises:
            NotOfferedError: the Nimbus that answers has no pages.
        """

        def ask(address: str) -> Json:
            return {**self._request(address, "POST", "/ui-login"), "address": address}

        found = self._somewhere(ask)
        return f"{self._tls.scheme}://{found['address']}{found['path']}"

    def _get(self, path: str) -> Json:
        return self._somewhere(lambda address: self._request(address, "GET", path))

    def _post(self, path: str, body: Json | None) -> Json:
        return self._leader_request("POST", path, json=body)

    def _change(self, name: str, action: str, body: Json | None = None) -> None:
        path = f"/topology/{path_part(self.topology_id(name))}/{action}"
        self._leader_request("POST", path, json=body)

    def _leader_request(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        stream: Callable[[], Iterator[bytes]] | None = None,
    ) -> Json:
        def ask(address: str) -> Json:
            for _ in range(_MOST_HOPS):
                try:
                    found = self._request(address, method, path, json=json, stream=stream)
                except NotLeaderError as error:
                    if error.leader is None or error.leader == address:
                        raise UnavailableError(str(error)) from error
                    address = error.leader
                    continue
                self._leader = address
                return found
            raise UnavailableError(f"the leader could not be found within {_MOST_HOPS} steps")

        return self._somewhere(ask)

    def _somewhere(self, ask: Callable[[str], Json]) -> Json:
        """Returns the first answer of the last leader and the seeds, asked again while there is none."""
        pauses = self._retry.pauses(random.random)
        while True:
            failed = []
            for address in dict.fromkeys([*([] if self._leader is None else [self._leader]), *self.seeds]):
                try:
                    return ask(address)
                except UnavailableError as error:
                    self._leader = None
                    failed.append(f"{address}: {error}")
            pause = next(pauses, None)
            if pause is None:
                raise UnavailableError("no Nimbus could answer: " + "; ".join(failed))
            self._sleep(pause)

    def _request(
        self,
        address: str,
        method: str,
        path: str,
        *,
        json: object = None,
        stream: Callable[[], Iterator[bytes]] | None = None,
    ) -> Json:
        content: Any = None
        headers = {}
        if stream is not None:
            content = stream()
        elif json is not None:
            content = msgspec.json.encode(json)
            headers["Content-Type"] = "application/json"
        timeout = httpx.Timeout(_UPLOAD_SECS, connect=5.0) if stream is not None else _TIMEOUT
        url = f"{self._tls.scheme}://{address}/api/v1{path}"
        try:
            response = self._http.request(method, url, content=content, headers=headers, timeout=timeout)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise UnavailableError(f"{type(error).__name__}: {error}") from error
        if response.is_success:
            return json_of(response)
        raise error_of(response, address)
