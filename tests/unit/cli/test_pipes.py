"""A reader that ends early is no failure of the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["config"],
        ["config", "--json"],
        ["config", "timeout"],
        ["explain", "jobs/word_count.py"],
        ["validate", "jobs/word_count.py", "--json"],
        ["new", "--list-examples"],
        ["run", "jobs/gone.py", "--json"],
    ],
    ids=" ".join,
)
def test_a_command_whose_reader_is_gone_ends_in_silence(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)  # whatever is printed, nobody reads it
    try:
        done = subprocess.run(
            [sys.executable, "-m", "storm_on_spark.cli", *arguments],
            cwd=ROOT,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)
    failed = arguments[0] == "run"  # its own result counts, read or not
    assert done.returncode == (2 if failed else 0), done.stderr
    assert done.stderr.count("\n") == (1 if failed else 0), done.stderr
    assert "BrokenPipe" not in done.stderr
