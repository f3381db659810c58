"""A worker's request to the first live process, from a machine that has no socket of it."""

from __future__ import annotations

import os
import pickle
from typing import Any, Final

from storm_on_spark.runtime.processes.lines.calls import Address
from storm_on_spark.runtime.processes.lines.listener import TEXT_LENGTH, Hello
from storm_on_spark.runtime.spouts.remote.keeper import this_machine

DEAD_SECS: Final = 10
"""A connection counts as broken if the other machine has not answered for this long."""
WORKER: Final = 0
"""The number of all callers that ask; further live processes have the numbers from 1 on."""


def ask(address: Address, question: object) -> Any:
    """Returns the answer; None if there is no live process, or the connection is broken.

    Args:
        address: of the first live process.
        question: one of `messages`.
    """
    try:
        line = address.call(Hello(WORKER, 0, os.getpid(), this_machine()[:TEXT_LENGTH], ""))
    except (OSError, EOFError):
        return None
    try:
        line.send_bytes(pickle.dumps(question, 5))
        return pickle.loads(line.recv_bytes())
    except (OSError, EOFError):
        return None
    finally:
        line.close()
