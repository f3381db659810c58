"""The queue spout without a server: what is refused, with which words, and what is hidden."""

from __future__ import annotations

from collections.abc import Callable

import cloudpickle
import pytest

from storm_on_spark import ConfigError
from storm_on_spark.connectors.queue import QueueServer, QueueSpout

SERVER = QueueServer("127.0.0.1", password="hush")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: QueueServer(""), "host is a text that is not empty"),
        (lambda: QueueServer("a", port=0), "port is a number from 1 to 65535 .given 0."),
        (lambda: QueueSpout("127.0.0.1", "q"), "server is a QueueServer"),
        (lambda: QueueSpout(SERVER, "q" * 256), "text of 1 to 255 bytes"),
        (lambda: QueueSpout(SERVER, "q", "body"), "translate is a function of a message"),
        (lambda: QueueSpout(SERVER, "q", prefetch=True), "prefetch is a number from 1 to 65535"),
    ],
)
def test_what_makes_no_sense_is_refused(build: Callable[[], object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build()


def test_it_can_be_sent_to_a_spout_host_and_shows_no_password() -> None:
    made = cloudpickle.loads(cloudpickle.dumps(QueueSpout(SERVER, "tasks")))
    assert made.fields == QueueSpout(SERVER, "tasks").fields
    assert "hush" not in repr(SERVER)
