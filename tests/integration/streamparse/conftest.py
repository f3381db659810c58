"""pystorm and streamparse as PyPI has them: downloaded when the tests run, never part of this repository."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

SUITES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("suites.yaml").read_text("utf-8"))
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "storm-on-spark", "sdists")
_NO_NETWORK = ("Temporary failure in name resolution", "Connection refused", "Network is unreachable", "timed out")


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    if done.returncode and any(sign in done.stderr for sign in _NO_NETWORK):
        pytest.skip(f"the package index can't be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def _sdist(name: str) -> Path:
    """Returns the downloaded archive of a package, whose checksum is right."""
    release, sha256 = SUITES[name]["release"], SUITES[name]["sha256"]
    path = CACHE / f"{name}-{release}.tar.gz"
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        fresh = CACHE / f"new-{os.getpid()}"
        try:
            pip("download", "--no-deps", "--no-binary", ":all:", "--dest", str(fresh), f"{name}=={release}")
            (fresh / path.name).replace(path)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    return path


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The unpacked sources of pystorm and streamparse, by name."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = tmp_path_factory.mktemp("sdists")
    for name in SUITES:
        with tarfile.open(_sdist(name)) as archive:
            archive.extractall(folder, filter="data")
    return {name: folder / f"{name}-{suite['release']}" for name, suite in SUITES.items()}


@pytest.fixture(scope="session")
def needed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what pystorm, streamparse's classes and both suites import."""
    folder = tmp_path_factory.mktemp("needed")
    wanted = ("simplejson", "six", "msgpack", "thriftpy2")
    pip("install", "--quiet", "--target", str(folder), "--only-binary", ":all:", *wanted)
    return folder


@pytest.fixture
def project(sources: dict[str, Path], tmp_path: Path) -> Path:
    """The project that `sparse quickstart` makes."""
    template = sources["streamparse"] / "streamparse" / "bootstrap" / "project"
    for part in ("src", "topologies", "virtualenvs"):
        shutil.copytree(template / part, tmp_path / part)
    # Its template has nothing to fill in.
    shutil.copy(template / "config.jinja2.json", tmp_path / "config.json")
    return tmp_path
