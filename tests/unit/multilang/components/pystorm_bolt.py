"""A bolt of pystorm that counts words in memory, as streamparse's word count does."""

from __future__ import annotations

import sys
from collections import Counter

from pystorm import Bolt


class WordCount(Bolt):
    def initialize(self, conf, context):
        self.counts = Counter()
        assert context["componentid"] == "count", context

    def process(self, tup):
        word = tup.values[0]
        self.counts[word] += 1
        self.emit([word, self.counts[word]])
        if word == "metric":
            self.report_metric("words", sum(self.counts.values()))


if __name__ == "__main__":
    WordCount(serializer=sys.argv[1] if len(sys.argv) > 1 else "json").run()
