"""A bolt of Storm's storm.py that does what the word of its input says."""

from __future__ import annotations

import storm


class Says(storm.Bolt):
    def initialize(self, conf, context):
        self.suffix = conf["test.suffix"]

    def process(self, tup):
        word = tup.values[0]
        if word == "fail":
            storm.fail(tup)
            return
        if word == "log":
            storm.logWarn("a warning from storm.py")
        elif word == "error":
            storm.reportError("an error from storm.py")
        elif word == "metric":
            storm.rpcMetrics("hits", 3)
        elif word == "raise":
            raise ValueError("raised in storm.py")
        tasks = storm.emit([word + self.suffix], anchors=[tup])
        storm.emit([tasks], stream="tasks", anchors=[tup])
        storm.ack(tup)


Says().run()
