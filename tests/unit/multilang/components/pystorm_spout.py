"""A spout of pystorm that emits some words, and again those that fail."""

from __future__ import annotations

from pystorm import ReliableSpout


class Words(ReliableSpout):
    def initialize(self, conf, context):
        self.left = [(number, word) for number, word in enumerate(["the", "cow", "jumped", "over", "the", "moon"])]

    def next_tuple(self):
        if self.left:
            number, word = self.left.pop(0)
            self.emit([word], tup_id=number)


if __name__ == "__main__":
    Words().run()
