"""Children of a test that are copies of it."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def forked(act: Callable[[], object]) -> int:
    """Returns the process id of a child that does something and ends: with status 99 if that raises.

    Whatever happens in it, it never continues with the tests.
    """
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            act()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid
