"""What must hold of every page, whatever it shows: nothing is cut off, and axe finds nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from visiting import Behind

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

COLOURS = ("color-contrast", "link-in-text-block")
"""Axe's rules for which it matters whether a page is light or dark."""
PICTURES = os.environ.get("UI_PICTURES")
"""The folder into which pictures of pages go, if it is set: `docs/ui` is made so."""
NARROW = os.environ.get("UI_NARROW_PICTURES")
"""The same for every page on a narrow screen, in full length, to be looked at."""


def complaints(page: Any, rules: tuple[str, ...] | None = None) -> list[str]:
    """Returns what axe finds."""
    options = {} if rules is None else {"runOnly": list(rules)}
    found = axe.Axe().run(page, options=options).response["violations"]
    return [f"{each['id']}: {node['target']}" for each in found for node in each["nodes"]]


def overflows(page: Any) -> bool:
    """Whether the page is wider than its window."""
    return bool(page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


def look_at_all(
    served: Behind[Any],
    pages: Mapping[str, str],
    shown: Sequence[str],
    scheme: str,
    parts: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Opens pages wide and narrow, in light or dark; takes the pictures of those that docs show.

    Args:
        served: the site.
        pages: name -> path.
        shown: names of those that docs show.
        scheme: `light` or `dark`.
        parts: name -> what the picture begins with, where that is not the top of the page.
    """
    visit = served.visit(color_scheme=scheme, reduced_motion="reduce", viewport={"width": 1100, "height": 720})
    for name, where in pages.items():
        visit.page.set_viewport_size({"width": 1100, "height": 720})
        visit.to(where)
        found = complaints(visit.page, COLOURS if scheme == "dark" else None)
        assert found == [], name
        assert visit.page.evaluate("window.harmed") is None, name
        if PICTURES and name in shown:
            if name in parts:
                visit.page.locator(parts[name]).evaluate("part => part.scrollIntoView()")
            visit.page.screenshot(path=Path(PICTURES) / f"{name.replace(' ', '-')}-{scheme}.png")
        for width in (1280, 360):
            visit.page.set_viewport_size({"width": width, "height": 800})
            if NARROW and width == 360:
                visit.page.screenshot(path=Path(NARROW) / f"{name.replace(' ', '-')}-{scheme}-360.png", full_page=True)
            assert not overflows(visit.page), (name, width)
