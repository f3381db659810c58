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

collect_ignore = ["adapters"]
"""Programs that run beside Storm's adapters, which they import."""

SUITES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("suites.yaml").read_text("utf-8"))
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "storm-on-spark", "sdists")
_NO_NETWORK = ("Temporary failure in name resolution", "Connection refused", "Network is unreachable", "timed out")


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    if done.returncode and any(sign in done.stderr for sign in _NO_NETWORK):
        pytest.skip(f"the package index can't be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def _archive(name: str) -> Path:
    return CACHE / f"{name}-{SUITES[name]['release']}.tar.gz"


def _is_whole(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def _download() -> None:
    """Downloads the packages' archives into the cache, both at once: pip builds each to learn its name."""
    CACHE.mkdir(parents=True, exist_ok=True)
    fresh = CACHE / f"new-{os.getpid()}"
    wanted = [f"{name}=={suite['release']}" for name, suite in SUITES.items()]
    try:
        pip("download", "--quiet", "--no-deps", "--no-binary", ",".join(SUITES), "--dest", str(fresh), *wanted)
        for name in SUITES:
            (fresh / _archive(name).name).replace(_archive(name))
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The unpacked sources of pystorm and streamparse, by name."""
    if not all(_is_whole(_archive(name), suite["sha256"]) for name, suite in SUITES.items()):
        _download()
    folder = tmp_path_factory.mktemp("sdists")
    for name, suite in SUITES.items():
        assert _is_whole(_archive(name), suite["sha256"]), f"{_archive(name)} is not the release that was looked at"
        with tarfile.open(_archive(name)) as archive:
            # Python before 3.11.4 doesn't know filters. The checksum says that this is the release.
            archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return {name: folder / f"{name}-{suite['release']}" for name, suite in SUITES.items()}


@pytest.fixture(scope="session")
def needed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what pystorm, streamparse's classes and both suites import."""
    folder = tmp_path_factory.mktemp("needed")
    wanted = ("simplejson", "six", "msgpack", "thriftpy2")
    pip("install", "--quiet", "--no-compile", "--target", str(folder), "--only-binary", ":all:", *wanted)
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
