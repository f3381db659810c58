"""The worker's side of the live process: a process that can't start is told of, once."""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_on_spark.runtime.live import client
from storm_on_spark.runtime.live.client import LiveClient
from storm_on_spark.runtime.processes.run_folder import remove_run_folder


@pytest.fixture
def start_id() -> Iterator[str]:
    start_id = uuid.uuid4().hex
    yield start_id
    remove_run_folder(start_id)


def test_a_live_process_that_ends_at_once_is_logged_once(
    start_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(client, "_START_SECS", 0.0)
    for _ in range(3):
        LiveClient(start_id).start(1)
        _, process = client.started[start_id]
        process.wait(60)
    [record] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "the live process can't be started: it ended with status 1" in record.getMessage()


def test_a_path_that_is_too_long_for_a_socket_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(client, "socket_of", lambda start_id: Path("/", "long" * 30, start_id))
    live = LiveClient(uuid.uuid4().hex)
    live.start(1)
    live.start(1)
    [record] = caplog.records
    assert "are allowed; set TMPDIR" in record.getMessage()
