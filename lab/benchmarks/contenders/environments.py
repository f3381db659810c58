"""Contenders from PyPI, each in its own environment; none is a dependency of the project."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

from lab.benchmarks.contenders import NotThereError

_BUILD_SECS = 600


def make(folder: Path, wanted: str) -> None:
    """Makes an environment unless it exists.

    Args:
        folder: of the environment.
        wanted: package and version.

    Raises:
        NotThereError: there is no such package for this Python, or no network.
    """
    stamp = folder / wanted
    if stamp.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    install = [str(python(folder)), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*install, "--only-binary", ":all:", wanted],
            capture_output=True,
            text=True,
            timeout=_BUILD_SECS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise NotThereError(f"{wanted} could not be installed within {_BUILD_SECS} s.") from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines() or ["nothing"]
        version = ".".join(map(str, sys.version_info[:2]))
        raise NotThereError(f"{wanted} could not be installed for Python {version}: {said[-1][:300]}")
    stamp.touch()


def python(folder: Path) -> Path:
    """Returns the interpreter of an environment."""
    return folder / "bin" / "python"
