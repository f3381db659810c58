"""The interface of `nimbus.thrift`, as classes that thriftpy2 makes of it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.text.extras import needs_extra


@functools.cache
def interface() -> Any:
    """Returns the module with the structs, the exceptions and the service `Nimbus`.

    Raises:
        SetupError: thriftpy2 isn't installed.
    """
    try:
        import thriftpy2
    except ImportError as error:
        raise SetupError(needs_extra("Thrift", "thrift", "thriftpy2")) from error
    return thriftpy2.load(str(Path(__file__).with_name("nimbus.thrift")), module_name="storm_nimbus_thrift")
