"""A stream through Spark: one line of text becomes a topology that runs there."""

from __future__ import annotations

from storm_on_spark.testing import run_topology
from storm_on_spark.xd.fused import load_stream


def test_a_stream_runs_on_spark(complete) -> None:
    target = load_stream(
        "numbers = rate --messagesPerSecond=1000 --maxMessages=20 | filter --expression=\"payload.endsWith('1')\" | log"
    )

    info = complete(target.topology({}))

    assert (info.acked, info.failed, info.pending) == (20, 0, 0)
    assert (info.components["filter"].executed, info.components["log"].executed) == (20, 2)


def test_messages_keep_payload_and_headers_on_spark(spark_session) -> None:
    target = load_stream("trigger | json-to-tuple | transform --expression='payload.a + headers.n' | log")
    captured = run_topology(target.topology({}), {"trigger": [['{"a": 40}', {"n": 2}]]}, spark=spark_session)
    assert (captured.values("transform"), captured.failed()) == ([(42, {"n": 2})], [])
