"""Notebooks and their kernels, as Jupyter runs them."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager
from lengths import PATIENCE_SECS

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"


@contextmanager
def kernel_in(folder: Path) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    """Starts a kernel in a folder, with the environment of this process."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(60)
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
        manager.cleanup_resources()


def messages(client: BlockingKernelClient, request: str, seconds: float = PATIENCE_SECS) -> Iterator[dict[str, Any]]:
    """Yields what a request brings, up to its end."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            message = client.get_iopub_msg(timeout=1)
        except queue.Empty:
            continue
        if message["parent_header"].get("msg_id") == request:
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return
            yield message
    raise AssertionError(f"not done within {seconds} s")


def run(client: BlockingKernelClient, code: str) -> str:
    """Runs code that must not raise; returns what it printed."""
    said = ""
    for message in messages(client, client.execute(code)):
        assert message["msg_type"] != "error", "\n".join(message["content"]["traceback"])
        said += message["content"].get("text", "")
    return said.strip()


@dataclass(frozen=True)
class Shown:
    """What a code cell of a notebook showed."""

    source: str
    pages: tuple[str, ...]
    """HTML, one after the other; a table that is redrawn has several."""
    printed: str


def run_notebook(client: BlockingKernelClient, name: str) -> list[Shown]:
    """Executes a notebook's code cells, none of which may raise."""
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    found = []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        source, pages, printed = "".join(cell["source"]), [], ""
        for message in messages(client, client.execute(source)):
            assert message["msg_type"] != "error", f"{name}: {source}\n" + "\n".join(message["content"]["traceback"])
            if page := message["content"].get("data", {}).get("text/html"):
                pages.append(page)
            printed += message["content"].get("text", "")
        found.append(Shown(source, tuple(pages), printed))
    return found
