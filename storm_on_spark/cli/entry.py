"""Where `storm-spark` begins.

It takes the signals over before it imports the command line, which takes a moment: a signal then ends the command with
a sentence, not with a traceback.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Runs the command line, and ends the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # For the moment that the next import takes.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from storm_on_spark.runtime.processes import at_once

    at_once.install()
    from storm_on_spark.cli.main import main as command

    try:
        command()
    finally:
        at_once.uninstall()
