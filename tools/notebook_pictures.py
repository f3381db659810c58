"""Executes the notebooks and takes the pictures of docs/notebooks.md from what their cells show.

Usage: python tools/notebook_pictures.py [PICTURE ...]

Needs Chromium on the path, and the jars of Kafka. Run it when what notebooks show has changed; look at the pictures.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "notebooks"

PICTURES: Final = {
    "topology": ("groupings", "builder = TopologyBuilder()", -1, (910, 490)),
    "plan": ("groupings", "compiled = compile_topology", -1, (1250, 1010)),
    "failures": ("reliability", "info = query.live()", -1, (820, 450)),
    "live": ("kafka_to_delta", "info = query.live(8)", -1, (820, 290)),
    "micro-batches": ("tuning", "times.medians()", -1, (620, 260)),
}
"""By name: the notebook, words of the cell, which of its pages, and the picture's width and height."""


def main() -> None:
    """Writes the pictures that are named, or all."""
    wanted = {name: PICTURES[name] for name in sys.argv[1:] or PICTURES}
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "integration")]
    from kernels import NOTEBOOKS, kernel_in, run_notebook

    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("notebook_pictures: no Chromium found, which takes the pictures")
    FOLDER.mkdir(exist_ok=True)
    with kernel_in(NOTEBOOKS) as (_, client):
        shown = {name: run_notebook(client, name) for name in dict.fromkeys(part[0] for part in wanted.values())}
    for picture, (notebook, words, which, (width, height)) in wanted.items():
        page = next(cell.pages for cell in shown[notebook] if words in cell.source and cell.pages)[which]
        take(browser, page, FOLDER / f"{picture}.png", width, height)


def take(browser: str, page: str, place: Path, width: int, height: int) -> None:
    """Takes the picture of a page."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(f'<meta charset="utf-8"><body style="margin:6px;background:#fff">{page}', encoding="utf-8")
        subprocess.run(
            [
                browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                "--hide-scrollbars", f"--window-size={width},{height}", f"--screenshot={place}", file.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )  # fmt: skip


if __name__ == "__main__":
    main()
