"""The process of a step: `python -m storm_on_spark.xd.container.jobs.child <descriptor of the result>`.

Its container writes to it while its ZooKeeper session lasts. When the session or the container ends, or the container
is paused for longer than the lease, the process ends itself and its whole group. So a step never runs twice at once,
even when it is restarted elsewhere.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Mapping

import msgspec

from storm_on_spark.xd.container.jobs.orders import LONGEST_ERROR, LONGEST_EXIT_STATUS, StepOrder, StepResult
from storm_on_spark.xd.dsl import parse_job
from storm_on_spark.xd.modules.declaration import ModuleType
from storm_on_spark.xd.modules.jobs.context import StepContext
from storm_on_spark.xd.modules.local_registry import RECORD_VERSION, LocalRegistry, checked_record
from storm_on_spark.xd.steps import bound, check_steps


class _Ordered(LocalRegistry):
    """The uploaded modules that an order names. A file is executed only if its SHA-256 matches the order."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        super().__init__()
        self._modules = modules

    def _record(self, type: ModuleType, name: str) -> dict[str, str] | None:  # noqa: A002
        if type != "job" or name not in self._modules:
            return None
        return checked_record({"version": RECORD_VERSION, "kind": "uploaded", "sha256": self._modules[name]})

    def _names(self, type: ModuleType) -> list[str]:  # noqa: A002
        return sorted(self._modules) if type == "job" else []


def main() -> int:
    """Runs the step that standard input describes; returns the exit code."""
    result = int(sys.argv[1])
    os.set_inheritable(result, False)
    order = msgspec.json.decode(_line(0), type=StepOrder)
    threading.Thread(target=_watch, args=(0, order.lease), name="lease", daemon=True).start()
    code, error, exit_status = 0, "", ""
    try:
        exit_status = _run(order)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        error = "" if code == 0 else f"exit code {code}" if isinstance(end.code, int) else str(end.code)
    except BaseException as raised:
        traceback.print_exc()
        told = getattr(raised, "code", None)
        code = told if isinstance(told, int) and told else 1
        error = f"{type(raised).__name__}: {raised}"
    with os.fdopen(result, "wb") as file:
        file.write(msgspec.json.encode(StepResult(exit=code, error=error[:LONGEST_ERROR], exit_status=exit_status)))
    return code


def _run(order: StepOrder) -> str:
    """Returns the exit status returned by the step's function; empty if that is not text."""
    job = parse_job(order.definition, order.job)
    parts = check_steps(job, order.definition, _Ordered(order.modules), order.parameters)
    (part,) = (part for part in parts if part.label == order.step)
    context = StepContext(order.job, order.step, order.execution, order.parameters)
    returned = bound(part, order.job, order.definition)(context)
    if not isinstance(returned, str):
        return ""
    if len(returned) > LONGEST_EXIT_STATUS or not returned.isprintable():
        raise ValueError(
            f"Expected an exit status of at most {LONGEST_EXIT_STATUS} printable characters, got {returned!r:.100}"
        )
    return returned


def _line(descriptor: int) -> bytes:
    """Reads a line unbuffered, because a buffer would swallow bytes meant for the watch."""
    found = bytearray()
    while not found.endswith(b"\n"):
        byte = os.read(descriptor, 1)
        if not byte:
            raise EOFError("the container has ended before it said what is to be done")
        found += byte
    return bytes(found)


def _watch(descriptor: int, lease: float) -> None:
    while select.select([descriptor], [], [], lease)[0]:
        if not os.read(descriptor, 4096):
            break
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
