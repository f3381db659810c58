from __future__ import annotations

import inspect

import pytest

from storm_on_spark.api import (
    BasicOutputCollector,
    BatchOutputCollector,
    OutputCollector,
    SpoutOutputCollector,
)


class Pending(SpoutOutputCollector):
    def emit(self, values, message_id=None, stream="default"):
        return []

    def emit_direct(self, task, values, message_id=None, stream="default"):
        pass

    def report_error(self, error):
        pass

    def pending_count(self):
        return 3


def test_storms_spelling_of_the_pending_count() -> None:
    assert Pending().get_pending_count() == 3


SIGNATURES = {
    OutputCollector: {
        "ack": "(self, tup)",
        "emit": "(self, values, anchors=None, stream='default')",
        "emit_direct": "(self, task, values, anchors=None, stream='default')",
        "fail": "(self, tup)",
        "report_error": "(self, error)",
        "reset_timeout": "(self, tup)",
    },
    SpoutOutputCollector: {
        "emit": "(self, values, message_id=None, stream='default')",
        "emit_direct": "(self, task, values, message_id=None, stream='default')",
        "pending_count": "(self)",
        "report_error": "(self, error)",
    },
    BasicOutputCollector: {
        "emit": "(self, values, stream='default')",
        "emit_direct": "(self, task, values, stream='default')",
        "report_error": "(self, error)",
        "reset_timeout": "(self, tup)",
    },
    BatchOutputCollector: {
        "emit": "(self, batch, parent=None, stream='default')",
        "fail": "(self, rows)",
        "report_error": "(self, error)",
    },
}


@pytest.mark.parametrize("collector", SIGNATURES)
def test_what_an_implementation_must_have(collector: type) -> None:
    signatures = {}
    for name in collector.__abstractmethods__:  # type: ignore[attr-defined]
        plain = [
            parameter.replace(annotation=parameter.empty)
            for parameter in inspect.signature(getattr(collector, name)).parameters.values()
        ]
        signatures[name] = str(inspect.Signature(plain))
    assert signatures == SIGNATURES[collector]
