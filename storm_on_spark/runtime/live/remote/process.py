"""A further live process that a keeper has started on some machine: `python -m ….remote.process PARENT PAGE`.

It executes its share of the tasks under the direction of the first live process, which it calls. It ends when that
connection does, and the keeper starts another one.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
from typing import Final

from storm_on_spark.runtime.processes.lines.line import Line
from storm_on_spark.runtime.spouts.remote.kept import begin

_LINE_ENDED: Final = 75
"""The exit code of a process whose connection has ended: the keeper starts another one."""


def main() -> None:
    """Answers requests until the connection ends."""
    _, line, first = begin()
    with contextlib.suppress(OSError, EOFError):
        _serve(line, first, int(sys.argv[2]))
    os._exit(_LINE_ENDED)  # threads of bolts don't keep it


def _serve(line: Line, question: bytes, page: int) -> None:
    from storm_on_spark.runtime.live.messages import Take
    from storm_on_spark.runtime.live.processes.member import MemberTasks
    from storm_on_spark.runtime.processes.diagnostics.busy import BusyPage
    from storm_on_spark.runtime.run.settings import ReportSettings
    from storm_on_spark.runtime.run.spec import load_spec
    from storm_on_spark.runtime.run.worker_process import release
    from storm_on_spark.runtime.spouts.watching.holding import HostBreath

    # It says so if native code holds the interpreter; the keeper ends it when that takes too long.
    breath = HostBreath(page)
    BusyPage(page).note_tasks()
    tasks, beats, start_id = MemberTasks(), Beats(line), ""
    try:
        while True:
            asked = pickle.loads(question)
            if isinstance(asked, Take) and not start_id:
                start_id = asked.start_id
                breath.begin(int(ReportSettings.of(load_spec(asked.spec).plan.conf).stall_secs))
            with beats:
                answer = pickle.dumps(tasks.answer(asked), 5)
            line.send_bytes(answer)
            question = line.recv_bytes()
    finally:
        if start_id:
            release(start_id)


class Beats:
    """Says each second that a request is being executed, for as long as the block lasts.

    Args:
        line: to the first live process. Nothing else may be sent within a block.
    """

    def __init__(self, line: Line) -> None:
        from storm_on_spark.runtime.live.remote.member import BEAT, BEAT_SECS

        self._line, self._beat, self._secs = line, BEAT, BEAT_SECS
        self._changed = threading.Condition()
        self._busy = False
        threading.Thread(target=self._run, name="beats", daemon=True).start()

    def __enter__(self) -> None:
        with self._changed:
            self._busy = True
            self._changed.notify()

    def __exit__(self, *_: object) -> None:
        # The lock is held while a beat is sent.
        with self._changed:
            self._busy = False

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._busy)
            threading.Event().wait(self._secs)
            with self._changed, contextlib.suppress(OSError):
                if self._busy:
                    self._line.send_bytes(self._beat)


if __name__ == "__main__":
    main()
