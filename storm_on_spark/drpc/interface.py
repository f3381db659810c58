"""The interface of `drpc.thrift`, as classes that thriftpy2 makes of it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.drpc.errors import DRPCExceptionType, DRPCExecutionException


@functools.cache
def interface() -> Any:
    """Returns the module with the structs, the exceptions and both services.

    Raises:
        SetupError: thriftpy2 isn't installed.
    """
    try:
        import thriftpy2
    except ImportError as error:
        raise SetupError(needs_extra("DRPC", "thrift", "thriftpy2")) from error
    return thriftpy2.load(str(Path(__file__).with_name("drpc.thrift")), module_name="storm_drpc_thrift")


def to_wire(error: DRPCExecutionException) -> Any:
    """Returns Thrift's form of an error."""
    return interface().DRPCExecutionException(msg=str(error), type=int(error.type))


def forbidden_to_wire(error: Exception) -> Any:
    """Returns Thrift's form of a refusal."""
    return interface().AuthorizationException(msg=str(error))


def from_wire(error: Any) -> DRPCExecutionException:
    """Returns an error that came over Thrift; one without a type, or of an unknown one, is an internal error."""
    kinds = {int(kind): kind for kind in DRPCExceptionType}
    return DRPCExecutionException(str(error.msg), kinds.get(error.type, DRPCExceptionType.INTERNAL_ERROR))
