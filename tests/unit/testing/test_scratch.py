"""A temporary folder goes at the end, whoever still writes into it."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

import pytest

from storm_on_spark.testing.running.scratch import scratch_folder


def write_for_a_while(folder: Path, begun: threading.Event) -> None:
    """As a worker does whose task has been cancelled."""
    # So many files that the removal takes longer than it takes to write one more.
    for number in range(500):
        (folder / str(number)).touch()
    begun.set()
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        number += 1
        with contextlib.suppress(OSError):
            (folder / str(number)).touch()


def test_a_folder_goes_although_a_worker_of_a_failed_topology_still_writes() -> None:
    begun = threading.Event()
    with scratch_folder("storm-on-spark-test-") as folder:
        writer = threading.Thread(target=write_for_a_while, args=(folder, begun))
        writer.start()
        begun.wait()
    writer.join()
    assert not folder.exists()


def test_it_goes_where_the_body_fails() -> None:
    with pytest.raises(ZeroDivisionError), scratch_folder("storm-on-spark-test-") as folder:
        raise ZeroDivisionError(folder)
    assert not folder.exists()
