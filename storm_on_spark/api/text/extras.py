"""How to install an extra of the package: from its checkout, because no package index has it yet."""

from __future__ import annotations

import functools
import importlib.metadata
import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

_PROJECT = "pyproject.toml"


def install_extra(extra: str) -> str:
    """Returns the command that installs an extra, with the path of the checkout that this installation comes from."""
    checkout = _checkout()
    if checkout is None:
        return f"pip install '.[{extra}]' in the folder of Storm on Spark's source"
    return f"pip install '{checkout}[{extra}]'"


def needs_extra(what: str, extra: str, *packages: str) -> str:
    """Returns the sentence about packages that are missing, and the extra that brings them.

    Args:
        what: the feature that needs them.
        extra: the extra in `pyproject.toml`.
        packages: the missing packages.
    """
    are = "is" if len(packages) == 1 else "are"
    return f"{what} needs {', '.join(packages)}, which {are} not installed: {install_extra(extra)}"


@functools.cache
def _checkout() -> Path | None:
    """Returns the folder that pip installed the package from, if it is still there."""
    beside = Path(__file__).parents[3]
    if (beside / _PROJECT).is_file():
        return beside
    try:
        # PEP 610; None for a package from an index.
        origin = importlib.metadata.distribution("storm-on-spark").read_text("direct_url.json")
        url = urlsplit(str(json.loads(origin or "{}").get("url", "")))
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    folder = Path(unquote(url.path))
    return folder if url.scheme == "file" and (folder / _PROJECT).is_file() else None
