"""Finds the Java that Spark runs on: 17 or 21.

Nothing but the standard library is imported at the top, so that `make` can run this file with `python -I` and say what
is missing before anything is installed.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SUPPORTED = (17, 21)
"""Major versions that Spark 4.2 is built and tested for."""

WHERE_SYSTEMS_PUT_IT = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/homebrew/opt/openjdk@*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)


@dataclass(frozen=True)
class Java:
    """One Java installation; `home` is what JAVA_HOME should be."""

    home: Path
    major: int

    @property
    def supported(self) -> bool:
        """Whether Spark runs on it."""
        return self.major in SUPPORTED


def parse_major(text: str) -> int | None:
    """Returns the major version named in a `release` file or in what `java -version` prints.

    >>> parse_major('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_major('java version "1.8.0_412"')
    8
    """
    found = re.search(r'^(?:JAVA_VERSION=|\w+ version )"(\d+)(?:\.(\d+))?', text, re.MULTILINE)
    if found is None:
        return None
    major, minor = int(found[1]), found[2]
    return int(minor) if major == 1 and minor else major


def installed_javas(env: Mapping[str, str]) -> Iterator[Java]:
    """Yields the installations in the order in which they count: JAVA_HOME, PATH, where systems put them."""
    homes: list[Path] = []
    if env.get("JAVA_HOME"):
        homes.append(Path(env["JAVA_HOME"]))
    on_path = shutil.which("java", path=env.get("PATH"))
    if on_path:
        homes.append(Path(on_path).resolve().parent.parent)
    for pattern in WHERE_SYSTEMS_PUT_IT:
        homes.extend(sorted(Path("/").glob(pattern.lstrip("/"))))
    seen: set[Path] = set()
    for home in homes:
        real = home.resolve()
        if real in seen:
            continue
        seen.add(real)
        major = _major_of(home)
        if major is not None:
            yield Java(home, major)


def find_java(env: Mapping[str, str] | None = None) -> Java | None:
    """Returns the first supported installation, or None."""
    return next((java for java in installed_javas(os.environ if env is None else env) if java.supported), None)


def missing_sentence(env: Mapping[str, str] | None = None) -> str:
    """Returns the sentence for a machine without a supported Java: what was found and how to get one."""
    found = list(installed_javas(os.environ if env is None else env))
    versions = " and ".join(f"{java.major} ({java.home})" for java in found)
    here = f"only Java {versions}" if found else "no Java"
    given = (os.environ if env is None else env).get("JAVA_HOME", "")
    nor = f" (nor in JAVA_HOME={given})" if given and _major_of(Path(given)) is None else ""
    return (
        f"Spark needs Java 17 or 21 and there is {here} here{nor}: install one (Debian, Ubuntu: apt-get install "
        "openjdk-17-jre-headless; macOS: brew install openjdk@17) and put it on PATH or in JAVA_HOME."
    )


def require_java() -> Java:
    """Returns the Java to start Spark with.

    Raises:
        SetupError: there is none that Spark runs on.
    """
    from storm_on_spark.api.errors import SetupError

    java = find_java()
    if java is None:
        raise SetupError(missing_sentence())
    note = ignored_java_home(os.environ, java)
    if note:
        logging.getLogger(__name__).warning("%s", note)
    return java


def ignored_java_home(env: Mapping[str, str], used: Java) -> str:
    """Returns a warning if JAVA_HOME names another Java than the one that is used; otherwise nothing."""
    given = env.get("JAVA_HOME", "")
    if not given or Path(given).resolve() == used.home.resolve():
        return ""
    major = _major_of(Path(given))
    what = "where there is no Java" if major is None else f"which is Java {major}"
    return f"JAVA_HOME is {given}, {what}; Spark needs 17 or 21, so Java {used.major} at {used.home} is used instead."


def _major_of(home: Path) -> int | None:
    binary = home / "bin" / "java"
    if not os.access(binary, os.X_OK):
        return None
    try:
        # Written by every JDK and JRE since 9; saves starting a process.
        return parse_major((home / "release").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        pass
    try:
        done = subprocess.run([str(binary), "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_major(done.stderr + done.stdout)


if __name__ == "__main__":
    if find_java() is None:
        sys.exit(missing_sentence())
