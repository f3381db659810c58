"""What a topology requires of pip: read where it is submitted, installed into its own folder where it runs."""

from __future__ import annotations

import contextlib
import importlib.metadata
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storm_on_spark.cluster.code.checksums import MAX_BYTES, REQUIREMENTS, open_regular
from storm_on_spark.cluster.errors import CodeError

_INSTALL_SECS: Final = 600.0
_OURS: Final = ("pyspark", "pyarrow", "pandas", "numpy", "cloudpickle", "protobuf", "grpcio", "msgspec", "kazoo")
"""What the driver itself runs on; a topology that needs another version of these is refused when it is installed."""

_LOCAL: Final = re.compile(r"\s*(-r|-c|-e|--requirement|--constraint|--editable|-f|--find-links|\.{1,2}/|/|~|file:)")


@dataclass(frozen=True)
class Requirements:
    """A file for pip, and packages that are not taken from it."""

    path: Path
    without: tuple[str, ...] = ()

    def read(self) -> bytes:
        """Returns the file's content without the lines that name these packages.

        Raises:
            CodeError: it can't be read, is too large or no text, or names something on this machine.
        """
        most = MAX_BYTES[REQUIREMENTS]
        with open_regular(self.path) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise CodeError(f"{self.path}: more than {most:,} bytes")
        try:
            lines = content.decode().splitlines(keepends=True)
        except UnicodeDecodeError as error:
            raise CodeError(f"{self.path} is not UTF-8 text: {error}") from error
        kept = []
        leaves_out = goes_on = False
        for number, line in enumerate(lines, 1):
            leaves_out = leaves_out if goes_on else self._leaves_out(line)
            goes_on = line.rstrip("\r\n").endswith("\\")
            if leaves_out:
                continue
            if _LOCAL.match(line) or re.search(r"@\s*file:", line):
                what = line.split()[0][:60]
                raise CodeError(
                    f"{self.path}:{number}: {what} names something on this machine; the cluster does not have it"
                )
            kept.append(line)
        return "".join(kept).encode()

    def _leaves_out(self, line: str) -> bool:
        """Whether a line names one of the packages: by itself, as `git+https://.../NAME.git` or as `#egg=NAME`."""
        names = "|".join(map(re.escape, self.without))
        where = r"\s*((-e|--editable)[\s=]+)?(\S+://\S*[/=])?"
        return bool(names) and re.match(rf"{where}({names})(\.git)?\s*($|[\[<>=!~;@#&\s\\])", line, re.I) is not None


def install(requirements: bytes, scratch: Path) -> Path:
    """Installs packages by pip into a new folder, and returns that.

    Args:
        requirements: as pip reads them.
        scratch: a folder for temporary files and for the new one.

    Raises:
        CodeError: pip can't install them; the message has its last words.
    """
    wanted, fixed, made = (scratch / name for name in ("requirements.txt", "fixed.txt", "packages"))
    wanted.write_bytes(requirements)
    fixed.write_text("".join(f"{name}=={version}\n" for name, version in _versions().items()))
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"),
        *("--target", str(made), "--constraint", str(fixed), "--requirement", str(wanted)),
    ]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_INSTALL_SECS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CodeError(f"the topology's requirements can't be installed: {type(error).__name__}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise CodeError("the topology's requirements can't be installed: " + " / ".join(said[-3:])[:1000])
    return made


def _versions() -> dict[str, str]:
    found = {}
    for name in _OURS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
