"""`storm-spark dev` in a process of its own, and all that it starts, found by the temporary folder that they share."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import psutil
from click.testing import CliRunner, Result
from lengths import PATIENCE_SECS
from waiting import eventually

from storm_on_spark.cli.main import main
from storm_on_spark.cli.reference.schema import schema_of

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "storm_on_spark.cli"]


class Dev:
    """A `storm-spark dev` with a temporary and a state folder of its own.

    Args:
        folder: for both.
        arguments: of the command.
    """

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.temporary, self.state = folder / "tmp", folder / "state"
        for path in (self.temporary, self.state):
            path.mkdir(exist_ok=True)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.temporary),
            "XDG_STATE_HOME": str(self.state),
        }
        self.arguments = arguments
        self.process: subprocess.Popen[str] | None = None
        self.seen: set[psutil.Process] = set()
        self.said: dict[str, Any] = {}

    def start(self) -> dict[str, Any]:
        """Starts it and returns what it says when it is ready."""
        self.process = subprocess.Popen(
            # The same on machines that are large enough for spare drivers.
            [*COMMAND, "dev", "--json", "-c", "supervisor.spare.drivers=0", *self.arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.said = json.loads(line)
        jsonschema.validate(self.said, schema_of("dev"))
        self.seen |= self.processes()
        return self.said

    def storm_spark(self, *arguments: object) -> str:
        """Gives another command, in this process; returns its standard output."""
        done = self.ask(*arguments)
        assert done.exit_code == 0, done.output
        return done.stdout

    def ask(self, *arguments: object) -> Result:
        """The same for one that may fail."""
        return CliRunner().invoke(main, [str(argument) for argument in arguments], env=self.environment)

    def run(self, *arguments: object, timeout: float = PATIENCE_SECS) -> subprocess.CompletedProcess[str]:
        """Runs another command in a process of its own, as in another terminal."""
        return subprocess.run(
            [*COMMAND, *map(str, arguments)],
            env=self.environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def document(self, *arguments: object) -> Any:
        found = json.loads(self.storm_spark(*arguments, "--json"))
        jsonschema.validate(found, schema_of(str(arguments[0])))
        return found

    def processes(self) -> set[psutil.Process]:
        """Returns all living processes whose temporary folder is ours or below it, without short-lived commands."""
        found = set()
        for process in psutil.process_iter():
            try:
                ours = process.environ().get("TMPDIR", "").startswith(str(self.temporary))
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.add(process)
            except (psutil.Error, OSError):
                continue
        return found

    def end(self, number: signal.Signals, timeout: float = PATIENCE_SECS) -> tuple[int, str]:
        """Sends a signal and waits until nothing is left; returns the exit code and what it said."""
        assert self.process is not None
        self.seen |= self.processes()
        self.process.send_signal(number)
        said = self.process.communicate(timeout=timeout)[1]
        code, self.process = self.process.returncode, None
        wait_until(lambda: not self.processes(), lambda: f"processes left: {self.processes()}", timeout)
        wait_until(lambda: not self.left(), lambda: f"files left: {self.left()}", timeout)
        return code, said

    def left(self) -> list[str]:
        """Returns the files that are there, and the sockets of its processes in the system's temporary folder."""
        numbers = {str(process.pid) for process in self.seen}
        sockets = [
            str(path)
            for path in Path("/tmp").glob("storm-on-spark-*")
            if len(path.name.split("-")) == 5 and path.name.split("-")[3] in numbers
        ]
        return [*map(str, self.temporary.iterdir()), *map(str, self.state.glob("*/dev.json")), *sockets]

    def kill(self) -> None:
        """Kills whatever is left."""
        for process in self.processes():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        if self.process is not None:
            self.process.communicate()


def wait_until(condition: Callable[[], object], what: Callable[[], str], timeout: float = PATIENCE_SECS) -> None:
    eventually(condition, what, timeout)
