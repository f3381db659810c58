"""DRPC over Thrift: frames in, frames out, on the server's event loop."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from storm_on_spark.api.config.secrets import scrubbed
from storm_on_spark.api.errors import StormError
from storm_on_spark.cluster.drpc.broker import Broker
from storm_on_spark.cluster.http.frames import FrameError
from storm_on_spark.cluster.thrift.checks import check_call
from storm_on_spark.drpc.errors import DRPCExceptionType, DRPCExecutionException
from storm_on_spark.drpc.interface import from_wire, interface, to_wire

logger = logging.getLogger(__name__)

MOST_FETCHED: Final = 1000
MOST_WAIT_MS: Final = 60_000


class CallsHandler:
    """The service `DistributedRPC`, under Storm's names.

    Args:
        broker: of the server.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def execute(self, functionName: str, funcArgs: str) -> str:
        """Returns the result of a function."""
        return await self._broker.execute(_text(functionName, "functionName"), _text(funcArgs, "funcArgs"))


class InvocationsHandler:
    """The service `DistributedRPCInvocations`, under Storm's names.

    Args:
        broker: of the server.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def result(self, id: str, result: str) -> None:  # noqa: A002
        """Takes a result."""
        self._broker.result(_text(id, "id"), _text(result, "result"))

    async def fetchRequest(self, functionName: str) -> Any:
        """Returns a request; an empty one, at once, if there is none."""
        found = await self._fetch(functionName, 1, 0)
        return found[0] if found else interface().DRPCRequest(func_args="", request_id="")

    async def fetchRequests(self, functionName: str, most: int, waitMillis: int) -> list[Any]:
        """Returns up to `most` requests, and waits for the first."""
        return await self._fetch(functionName, most, waitMillis)

    async def failRequest(self, id: str) -> None:  # noqa: A002
        """Takes that a request failed."""
        self._broker.fail(_text(id, "id"))

    async def failRequestV2(self, id: str, e: Any) -> None:  # noqa: A002
        """Takes that a request failed, and why."""
        self._broker.fail(_text(id, "id"), None if e is None else from_wire(e))

    async def _fetch(self, function: object, most: object, millis: object) -> list[Any]:
        name = _text(function, "functionName")
        if not isinstance(most, int) or not isinstance(millis, int) or not 0 < most <= MOST_FETCHED or millis < 0:
            raise StormError(f"fetchRequests takes 1 to {MOST_FETCHED} requests and a time in ms: {most!r}, {millis!r}")
        found = await self._broker.fetch(name, most, min(millis, MOST_WAIT_MS) / 1000)
        return [interface().DRPCRequest(func_args=each.arguments, request_id=each.id) for each in found]


def answering(service: str, handler: CallsHandler | InvocationsHandler) -> Callable[[bytes], Awaitable[bytes]]:
    """Returns what answers the frames of a service.

    Args:
        service: its name in the interface.
        handler: what has its methods.
    """

    async def respond(frame: bytes) -> bytes:
        return await answer(service, handler, frame)

    return respond


async def answer(service: str, handler: CallsHandler | InvocationsHandler, frame: bytes) -> bytes:
    """Returns the answer to a call; both are messages of the binary protocol.

    Raises:
        FrameError: it is no call.
    """
    from thriftpy2.protocol.binary import TBinaryProtocol
    from thriftpy2.thrift import TApplicationException, TProcessor
    from thriftpy2.transport import TMemoryBuffer

    check_call(frame)
    processor = TProcessor(getattr(interface(), service), handler)
    out = TMemoryBuffer()
    writing = TBinaryProtocol(out)
    try:
        name, number, result, call = processor.process_in(TBinaryProtocol(TMemoryBuffer(frame), strict_read=False))
    except Exception as error:
        # The structure is right, so it is of other types than the interface's.
        raise FrameError(f"a call that can't be read: {type(error).__name__}") from error
    refused = None
    if call is None:
        message = f"{name} is no method of {service}"
        refused = TApplicationException(TApplicationException.UNKNOWN_METHOD, message)
    else:
        try:
            result.success = await call()
        except Exception as error:
            declared = to_wire(_declared(error))
            if not processor.handle_exception(declared, result):
                refused = TApplicationException(TApplicationException.INTERNAL_ERROR, declared.msg)
    if refused is not None:
        processor.send_exception(writing, name, refused, number)
    else:
        processor.send_result(writing, name, result, number)
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
