from __future__ import annotations

import logging
from collections import deque

import pytest
from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER, FinalizerWorker

from storm_on_spark.spark.session.jvm.silence import COMPLAINT, silence_its_end


class _Gone:
    """A JVM's client that complains as Py4J does when the JVM has ended."""

    def garbage_collect_object(self, _target: str, _free: bool) -> None:
        logging.getLogger().error(COMPLAINT)
        logging.getLogger().error("something else")


def test_the_thread_that_frees_objects_does_not_complain_that_the_jvm_has_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    silence_its_end()
    silence_its_end()
    worker = FinalizerWorker(deque([SHUTDOWN_FINALIZER_WORKER, (_Gone(), "o1")]))
    worker.start()
    worker.join()
    logging.getLogger().error(COMPLAINT)

    assert [record.getMessage() for record in caplog.records] == ["something else", COMPLAINT]
