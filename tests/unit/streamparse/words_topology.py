"""A topology as streamparse's users write it: a reliable spout, a bolt that fails at times, a count, batches."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from streamparse import BatchingBolt, Bolt, Grouping, ReliableSpout, Stream, Topology

SENTENCES = ("to be or not", "to be that", "is the question") * 30


class Sentences(ReliableSpout):
    outputs = ("sentence",)

    def initialize(self, conf: Any, ctx: Any) -> None:
        self.next = 0

    def next_tuple(self) -> None:
        if self.next < len(SENTENCES):
            self.emit([SENTENCES[self.next]], tup_id=self.next)
            self.next += 1

    def exhausted(self) -> bool:
        return self.next == len(SENTENCES) and not self.unacked_tuples


class Split(Bolt):
    outputs = (Stream(fields=["word"], name="words"),)

    def initialize(self, conf: Any, ctx: Any) -> None:
        self.failed = Path(conf["test.notes"], "failed")

    def process(self, tup: Any) -> None:
        if tup.values.sentence.startswith("is") and self._is_first():
            raise ValueError("this sentence fails")
        for word in tup.values.sentence.split():
            self.emit([word], stream="words")

    def _is_first(self) -> bool:
        # By a file: outside of the bolt's state, which goes back to what it was, and one for both tasks.
        try:
            self.failed.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


class Count(Bolt):
    outputs = ("word", "count")

    def initialize(self, conf: Any, ctx: Any) -> None:
        self.counts: Counter[str] = Counter()
        self.path = Path(conf["test.notes"], f"counts-{ctx['taskid']}.json")

    def process(self, tup: Any) -> None:
        self.counts[tup.values.word] += 1
        self.path.write_text(json.dumps(self.counts))
        self.emit([tup.values.word, self.counts[tup.values.word]])


class Groups(BatchingBolt):
    config = {"topology.tick.tuple.freq.secs": 1}  # noqa: RUF012 # as users write it

    def initialize(self, conf: Any, ctx: Any) -> None:
        self.total = 0
        self.path = Path(conf["test.notes"], "groups.json")

    def group_key(self, tup: Any) -> str:
        return str(tup.values.word)

    def process_batch(self, key: str, tups: list[Any]) -> None:
        self.total += len(tups)
        self.path.write_text(json.dumps(self.total))


class Words(Topology):
    sentences = Sentences.spec()
    split = Split.spec(inputs=[sentences], par=2)
    count = Count.spec(inputs={split["words"]: Grouping.fields("word")}, par=2)
    groups = Groups.spec(inputs={count: Grouping.GLOBAL})
