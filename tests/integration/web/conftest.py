"""A headless Chromium, and the sample site behind a real server."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sample_site import SampleSite
from sample_streams import SampleStreams

from storm_on_spark.cluster.http.server import HttpServer, listen
from storm_on_spark.web.access.gate import CodesOnly, Gate
from storm_on_spark.web.access.sessions import Sessions
from storm_on_spark.web.app import App
from storm_on_spark.web.pages.registry import STREAMS, TOPOLOGIES

sys.path.insert(0, str(Path(__file__).parent))

from visiting import Served, ServedStreams  # found by that path

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser; each test has contexts of its own."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    # Chromium refuses to run as root with its sandbox.
    options = ["--no-sandbox"] if os.getuid() == 0 else []
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=options)
        yield found
        found.close()


@pytest.fixture
def served(browser: Any) -> Iterator[Served]:
    """The sample site; at the end no console may have said anything."""
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    sessions, site = Sessions(), SampleSite()
    app = App(site, Gate(sessions, CodesOnly(), port), TOPOLOGIES, live_secs=0.1)
    found = Served(site, sessions, f"http://127.0.0.1:{port}", browser)
    with HttpServer(app.asgi(), listener):
        yield found
        for visit in found.visits:
            visit.page.context.close()
        app.close()
    assert [said for visit in found.visits for said in visit.said] == []


@pytest.fixture
def streams(browser: Any) -> Iterator[ServedStreams]:
    """The sample of streams; at the end no console may have said anything."""
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    sessions, sample = Sessions(), SampleStreams()
    app = App(sample.site, Gate(sessions, CodesOnly(), port), STREAMS, live_secs=0.1)
    found = ServedStreams(sample, sessions, f"http://127.0.0.1:{port}", browser)
    with HttpServer(app.asgi(), listener):
        yield found
        for visit in found.visits:
            visit.page.context.close()
        app.close()
    assert [said for visit in found.visits for said in visit.said] == []
