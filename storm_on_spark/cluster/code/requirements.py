"""Installing what a topology requires into a folder of its own."""

from __future__ import annotations

import contextlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path
from typing import Final

from storm_on_spark.cluster.errors import CodeError

_INSTALL_SECS: Final = 600.0
_OURS: Final = ("pyspark", "pyarrow", "pandas", "numpy", "cloudpickle", "protobuf", "grpcio", "msgspec", "kazoo")
"""What the driver itself runs on; a topology that needs another version of these is refused when it is installed."""


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
