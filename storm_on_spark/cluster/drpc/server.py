"""A DRPC server: three ports on one event loop, on its own thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import functools
import logging
import threading
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Final

from starlette.applications import Starlette

from storm_on_spark.api.config import Config, validate_conf
from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.cluster.drpc.app import make_app
from storm_on_spark.cluster.drpc.broker import Broker, finish
from storm_on_spark.cluster.drpc.service import CallsHandler, Check, InvocationsHandler, answering
from storm_on_spark.cluster.drpc.settings import ServerSettings, function_rights, thrift_users, token_names
from storm_on_spark.cluster.http.auth import Authentication, read_users
from storm_on_spark.cluster.http.frames import MOST_BYTES, FrameService
from storm_on_spark.cluster.http.guard import Guard
from storm_on_spark.cluster.http.limits import Limits
from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.cluster.security.addresses import is_loopback
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tls import Tls
from storm_on_spark.cluster.security.tokens import Tokens
from storm_on_spark.cluster.thrift.login import DigestLogin
from storm_on_spark.drpc.connection import Address
from storm_on_spark.drpc.errors import DRPCExceptionType, DRPCExecutionException
from storm_on_spark.runtime.processes.closing import Service

logger = logging.getLogger(__name__)

_START_SECS: Final = 10.0
_LOOK_SECS: Final = 1.0
"""How often a caller of this process looks whether the server is still there."""
_LIMITS: Final = Limits(connections=1024, by_address=768, idle_secs=3600.0)
"""Clients of Thrift keep their connections between two calls."""


@dataclasses.dataclass(frozen=True)
class Ports:
    """Other ports than the configuration's; 0 is any free one."""

    calls: int | None = None
    invocations: int | None = None
    http: int | None = None


class DRPCServer(Service):
    """A DRPC server.

    Args:
        conf: the cluster's configuration.
        ports: in the place of those of the configuration.

    Raises:
        SetupError: the configuration says nothing that it could run by, a port is taken, or others could reach it
            without authentication.

    Example:
        >>> with DRPCServer({}, Ports(0, 0, 0)) as server:                    # doctest: +SKIP
        ...     server.http_address
        '127.0.0.1:40213'
    """

    def __init__(self, conf: Mapping[str, Any], ports: Ports = Ports()) -> None:  # it is frozen
        validate_conf(conf, "drpc")
        if find_spec("thriftpy2") is None:
            raise SetupError(needs_extra("DRPC", "thrift", "thriftpy2"))
        settings, security = ServerSettings.of(conf), SecuritySettings.of(conf)
        tokens = Tokens.of(security)
        # Whoever may call may also send arguments in a body: `nimbus.admins` is about topologies.
        known = None if security.digest_file is None else read_users(security.digest_file)
        authentication = Authentication(tokens, known)
        host = settings.bind_address
        self._tls = Tls.of_daemon(security)
        users = thrift_users(settings, tokens)
        if not is_loopback(host) and (users is None or not authentication.required):
            raise SetupError(
                f"drpc.bind.address {host!r} can be reached from other hosts: set {Config.NIMBUS_AUTH_TOKEN_FILE}, or "
                "bind to 127.0.0.1"
            )
        self.broker = Broker(settings.timeout_secs, settings.queue_size)
        most = min(settings.most_bytes, MOST_BYTES)
        self._token_file = security.token_file
        self._ca_file = security.ca_file

        rights = function_rights(settings, logins=users is not None and authentication.required)

        def check_of(user: str | None, check: Callable[[str | None, str], None]) -> Check | None:
            # Anyone with the token may do everything.
            return None if user in token_names(tokens) else functools.partial(check, user)

        def frames(
            service: str,
            handler: type[CallsHandler | InvocationsHandler],
            check: Callable[[str | None, str], None] | None,
        ) -> FrameService:
            login = None if users is None else lambda: DigestLogin(users())
            everybody = handler(self.broker)
            answer = answering(
                service,
                lambda user: everybody if check is None else handler(self.broker, check_of(user, check)),
            )
            return FrameService(answer, most, 1, login, on_loop=True)

        none = Starlette()
        may_call = None if rights is None else rights.check_client
        may_answer = None if rights is None else rights.check_topology
        doors = (
            (
                settings.port if ports.calls is None else ports.calls,
                none,
                frames("DistributedRPC", CallsHandler, may_call),
            ),
            (
                settings.invocations_port if ports.invocations is None else ports.invocations,
                none,
                frames("DistributedRPCInvocations", InvocationsHandler, may_answer),
            ),
            (settings.http_port if ports.http is None else ports.http, make_app(self.broker, most, rights), None),
        )
        with contextlib.ExitStack() as stack:
            listeners = [stack.enter_context(contextlib.closing(listen(host, port))) for port, _, _ in doors]
            self._servers = [
                HttpServer(Guard(app, authentication), listener, _LIMITS, self._tls.server, service)
                for listener, (_, app, service) in zip(listeners, doors, strict=True)
            ]
            stack.pop_all()
        self._ports = [int(listener.getsockname()[1]) for listener in listeners]
        self.host: str = "localhost" if self._tls.client is not None and is_loopback(host) else host
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="drpc", daemon=True)

    @property
    def calls(self) -> Address:
        """Where clients call it over Thrift."""
        return self._address(0)

    @property
    def invocations(self) -> Address:
        """Where topologies fetch requests."""
        return self._address(1)

    @property
    def url(self) -> str:
        """Where clients call it over HTTP."""
        return f"{self._tls.scheme}://{self._address(2)}"

    def start(self) -> None:
        """Starts it and returns when it serves.

        Raises:
            SetupError: it doesn't.
        """
        self._thread.start()
        if not self._ready.wait(_START_SECS):
            raise SetupError("the DRPC server did not start; see the log")
        logger.info("DRPC server: Thrift %s and %s, HTTP %s", self.calls, self.invocations, self.url)

    def execute(self, function: str, arguments: str) -> str:
        """Returns the result of a function, for callers of this process; any thread may call it.

        Raises:
            DRPCExecutionException: there is no result; its type says why.
        """
        loop, ended = self._loop, DRPCExecutionException("the DRPC server has ended", DRPCExceptionType.SERVER_SHUTDOWN)
        if loop is None or not self._thread.is_alive():
            raise ended
        caller: concurrent.futures.Future[str] = concurrent.futures.Future()

        def begin() -> None:
            try:
                self.broker.submit(function, arguments, lambda outcome: finish(caller, outcome))
            except DRPCExecutionException as error:
                caller.set_exception(error)

        try:
            # Not as a coroutine: its result would take three turns of the loop more.
            loop.call_soon_threadsafe(begin)
        except RuntimeError as error:  # the loop is closed
            raise ended from error
        while True:
            try:
                return caller.result(_LOOK_SECS)
            except concurrent.futures.TimeoutError:
                if not self._thread.is_alive() and not caller.done():
                    raise ended from None

    def close(self) -> None:
        """Ends it at once: requests that wait are answered with SERVER_SHUTDOWN."""
        if self._thread.is_alive() and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._end)
            self._thread.join()
        for server in self._servers:
            server.close()

    def _end(self) -> None:
        self.broker.close()
        for server in self._servers:
            server.stop()

    def _run(self) -> None:
        with contextlib.suppress(SystemExit):
            asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.call_soon(self._ready.set)
        await asyncio.gather(*(server.serve() for server in self._servers))

    def _address(self, door: int) -> Address:
        return Address(self.host, self._ports[door], self._token_file, self._ca_file)
