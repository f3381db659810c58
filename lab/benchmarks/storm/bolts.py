"""The word count's bolts in Python for Apache Storm, over multilang with pystorm: `python bolts.py split|count`."""

from __future__ import annotations

import collections
import sys
from typing import Any

from pystorm import Bolt


class Split(Bolt):
    def process(self, tup: Any) -> None:
        for word in tup.values[0].split():
            self.emit([word], need_task_ids=False)


class Count(Bolt):
    def initialize(self, conf: Any, context: Any) -> None:
        self.counts: collections.Counter[str] = collections.Counter()

    def process(self, tup: Any) -> None:
        self.counts[tup.values[0]] += 1


if __name__ == "__main__":
    {"split": Split, "count": Count}[sys.argv[1]]().run()
