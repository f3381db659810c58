"""`breakpoint()` in a process without a terminal: it prints where it would work, and continues."""

from __future__ import annotations

import os
import sys
from typing import Any

ADVICE = "`storm-spark run --debugger FILE` runs the topology in one process, in which it works"


def pass_over() -> None:
    """Makes `breakpoint()` say in one sentence what to do, once for each place, unless `PYTHONBREAKPOINT` is set."""
    if "PYTHONBREAKPOINT" not in os.environ and sys.breakpointhook is sys.__breakpointhook__:
        sys.breakpointhook = _Passer()


class _Passer:
    def __init__(self) -> None:
        self._reported: set[tuple[str, int]] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        frame = sys._getframe(1)  # as breakpoint() itself does
        place = frame.f_code.co_filename, frame.f_lineno
        if place not in self._reported:
            self._reported.add(place)
            print(  # noqa: T201 # to where the component prints
                f"breakpoint() in {place[0]}, line {place[1]}, is passed over: this process has no terminal. {ADVICE}.",
                file=sys.stderr,
                flush=True,
            )
