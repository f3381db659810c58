"""DRPC over Thrift: frames in, frames out, on the server's event loop."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from storm_on_spark.api.config.secrets import scrubbed
from storm_on_spark.api.errors import StormError
from storm_on_spark.cluster.drpc.broker import Broker
from storm_on_spark.cluster.drpc.rules import Request
from storm_on_spark.cluster.errors import ForbiddenError
from storm_on_spark.cluster.http.frames import FrameError
from storm_on_spark.cluster.thrift.checks import check_call
from storm_on_spark.drpc.errors import DRPCExceptionType, DRPCExecutionException
from storm_on_spark.drpc.interface import forbidden_to_wire, from_wire, interface, to_wire
from storm_on_spark.drpc.messages import binary

logger = logging.getLogger(__name__)

MOST_FETCHED: Final = 1000
MOST_WAIT_MS: Final = 60_000


Check = Callable[[str], None]
"""Raises `ForbiddenError` if the caller has no right to a function."""


class CallsHandler:
    """The service `DistributedRPC`, under Storm's names.

    Args:
        broker: of the server.
        check: called with the function; None if everybody may call all.
    """

    def __init__(self, broker: Broker, check: Check | None = None) -> None:
        self._broker = broker
        self._check = check

    async def execute(self, functionName: str, funcArgs: str) -> str:
        """Returns the result of a function."""
        function = _text(functionName, "functionName")
        if self._check is not None:
            self._check(function)
        return await self._broker.execute(function, _text(funcArgs, "funcArgs"))


class InvocationsHandler:
    """The service `DistributedRPCInvocations`, under Storm's names.

    Args:
        broker: of the server.
        check: called with the function; None if everybody may answer all.
    """

    def __init__(self, broker: Broker, check: Check | None = None) -> None:
        self._broker = broker
        self._check = check

    def result(self, id: str, result: str) -> None:  # noqa: A002
        """Takes a result."""
        self._check_request(id)
        self._broker.result(_text(id, "id"), _text(result, "result"))

    def fetchRequest(self, functionName: str) -> Any:
        """Returns a request; an empty one, at once, if there is none."""
        found = self._broker.fetch_now(self._function(functionName), 1)
        return _wire(found[0]) if found else interface().DRPCRequest(func_args="", request_id="")

    async def fetchRequests(self, functionName: str, most: int, waitMillis: int) -> list[Any]:
        """Returns up to `most` requests, and waits for the first."""
        name = self._function(functionName)
        given: tuple[object, object] = (most, waitMillis)
        if not all(isinstance(each, int) for each in given) or not 0 < most <= MOST_FETCHED or waitMillis < 0:
            raise StormError(
                f"fetchRequests takes 1 to {MOST_FETCHED} requests and a time in ms: {most!r}, {waitMillis!r}"
            )
        found = await self._broker.fetch(name, most, min(waitMillis, MOST_WAIT_MS) / 1000)
        return list(map(_wire, found))

    def failRequest(self, id: str) -> None:  # noqa: A002
        """Takes that a request failed."""
        self._check_request(id)
        self._broker.fail(_text(id, "id"))

    def failRequestV2(self, id: str, e: Any) -> None:  # noqa: A002
        """Takes that a request failed, and why."""
        self._check_request(id)
        self._broker.fail(_text(id, "id"), None if e is None else from_wire(e))

    def _function(self, name: object) -> str:
        function = _text(name, "functionName")
        if self._check is not None:
            self._check(function)
        return function

    def _check_request(self, key: object) -> None:
        """Refuses whoever may not answer the request's function; of one that has ended nothing can be told."""
        function = None if self._check is None else self._broker.function_of(_text(key, "id"))
        if self._check is not None and function is not None:
            self._check(function)


def _wire(request: Request) -> Any:
    return interface().DRPCRequest(func_args=request.arguments, request_id=request.id)


def answering(
    service: str, handler_of: Callable[[str | None], CallsHandler | InvocationsHandler]
) -> Callable[[bytes, str | None], bytes | Awaitable[bytes]]:
    """Returns what answers the frames of a service.

    Args:
        service: its name in the interface.
        handler_of: returns what has its methods, for who logged in.
    """

    def respond(frame: bytes, user: str | None) -> bytes | Awaitable[bytes]:
        return answer(service, handler_of(user), frame)

    return respond


def answer(service: str, handler: CallsHandler | InvocationsHandler, frame: bytes) -> bytes | Awaitable[bytes]:
    """Returns the answer to a call, or what waits for it; calls and answers are messages of the binary protocol.

    Raises:
        FrameError: it is not a call.
    """
    from thriftpy2.thrift import TProcessor

    check_call(frame)
    protocol, buffer = binary()
    processor = TProcessor(getattr(interface(), service), handler)
    try:
        name, number, result, call = processor.process_in(protocol(buffer(frame), strict_read=False))
    except Exception as error:
        # The structure is right, so it is of other types than the interface's.
        raise FrameError(f"a call that can't be read: {type(error).__name__}") from error
    call_of = _Call(processor, name, number, result)
    if call is None:
        return call_of.unknown(f"{name} is not a method of {service}")
    try:
        found = call()
    except Exception as error:
        return call_of.raised(error)
    return call_of.later(found) if inspect.isawaitable(found) else call_of.returned(found)


@dataclass(frozen=True)
class _Call:
    """A call that was read: from what it comes to, the answer."""

    processor: Any
    name: str
    number: int
    result: Any

    async def later(self, found: Awaitable[Any]) -> bytes:
        """Waits for what the call returns."""
        try:
            value = await found
        except Exception as error:
            return self.raised(error)
        return self.returned(value)

    def returned(self, value: Any) -> bytes:
        """Answers with a value."""
        self.result.success = value
        return self._written()

    def raised(self, error: Exception) -> bytes:
        """Answers with an error; one that the method doesn't declare is an internal error of Thrift."""
        from thriftpy2.thrift import TApplicationException

        declared = forbidden_to_wire(error) if isinstance(error, ForbiddenError) else to_wire(_declared(error))
        if self.processor.handle_exception(declared, self.result):
            return self._written()
        return self._refused(TApplicationException(TApplicationException.INTERNAL_ERROR, declared.msg))

    def unknown(self, message: str) -> bytes:
        """Answers that there is no such method."""
        from thriftpy2.thrift import TApplicationException

        return self._refused(TApplicationException(TApplicationException.UNKNOWN_METHOD, message))

    def _written(self) -> bytes:
        protocol, buffer = binary()
        out = buffer()
        self.processor.send_result(protocol(out), self.name, self.result, self.number)
        return bytes(out.getvalue())

    def _refused(self, refused: Any) -> bytes:
        protocol, buffer = binary()
        out = buffer()
        self.processor.send_exception(protocol(out), self.name, refused, self.number)
        return bytes(out.getvalue())


def _declared(error: Exception) -> DRPCExecutionException:
    """Returns what a caller is told; what is not ours is only logged."""
    if isinstance(error, DRPCExecutionException):
        return error
    if isinstance(error, StormError):
        return DRPCExecutionException(scrubbed(str(error)), DRPCExceptionType.INTERNAL_ERROR)
    logger.error("A DRPC call failed", exc_info=error)
    return DRPCExecutionException(
        f"{type(error).__name__}; see the log of the DRPC server", DRPCExceptionType.INTERNAL_ERROR
    )


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise StormError(f"{what} of a call: expected text, given {type(value).__name__}")
    return value
