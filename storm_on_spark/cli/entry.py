"""The entry point of `storm-spark`.

It installs signal handlers before it imports the command line, which takes a moment. A signal during the import then
ends the command with a sentence instead of a traceback.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Runs the command line, and ends the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Needed while the next import runs.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from storm_on_spark.runtime.processes.ending import at_once

    at_once.install()
    from storm_on_spark.cli.main import main as command

    try:
        command()
    finally:
        at_once.uninstall()
