"""The word count's bolts in Python for Apache Storm, over multilang with pystorm: `python bolts.py split|count`."""

from __future__ import annotations

import collections
import sys
from typing import Any

from pystorm import Bolt


class Split(Bolt):  # type: ignore[misc] # pystorm has no types
    def process(self, tup: Any) -> None:
        for word in tup.values[0].split():
            self.emit([word], need_task_ids=False)


class Count(Bolt):  # type: ignore[misc]
    def initialize(self, conf: Any, context: Any) -> None:
        self.counts: collections.Counter[str] = collections.Counter()

    def process(self, tup: Any) -> None:
        self.counts[tup.values[0]] += 1


BOLTS: dict[str, Any] = {"split": Split, "count": Count}

if __name__ == "__main__":
    BOLTS[sys.argv[1]]().run()
