"""A spout and bolts for pystorm, which note each tuple that they receive: `python components.py CLASS` runs one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pystorm import Bolt, Spout

LINES = ("the cow jumped over the moon", "an apple a day", "to fail is human", "late is the cow", "über allen gipfeln")
SENTENCES = LINES * 40


def note(component: Any, kind: str, values: Any) -> None:
    """Adds a line to the file of a task."""
    path = Path(component.folder, f"{kind}-{component.task_id}.jsonl")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(list(values)) + "\n")


class Sentences(Spout):  # type: ignore[misc] # pystorm has no types
    """Emits sentences with the number of the attempt; failed ones are emitted again."""

    def initialize(self, conf: Any, context: Any) -> None:
        self.folder, self.acked = conf["same.folder"], 0
        self.attempts = [0] * len(SENTENCES)
        self.left = list(range(len(SENTENCES)))

    def next_tuple(self) -> None:
        if self.left:
            number = self.left.pop(0)
            self.attempts[number] += 1
            self.emit([SENTENCES[number], self.attempts[number]], tup_id=number)

    def ack(self, tup_id: int) -> None:
        note(self, "acked", [tup_id])
        self.acked += 1
        if self.exhausted():
            Path(self.folder, "done").touch()

    def fail(self, tup_id: int) -> None:
        note(self, "failed", [tup_id])
        self.left.append(tup_id)

    def exhausted(self) -> bool:
        """Returns whether nothing more will be emitted; Storm has no such method."""
        return self.acked == len(SENTENCES)


class Noting(Bolt):  # type: ignore[misc]
    """Records its input."""

    def initialize(self, conf: Any, context: Any) -> None:
        self.folder = conf["same.folder"]

    def process(self, tup: Any) -> None:
        note(self, self.component_name, [tup.stream, *tup.values])


class Split(Noting):
    """Splits sentences; one with the word `fail` fails at its first attempt."""

    auto_ack = False

    def process(self, tup: Any) -> None:
        super().process(tup)
        sentence, attempt = tup.values
        words = sentence.split()
        if "fail" in words and attempt == 1:
            self.fail(tup)
            return
        for word in words:
            self.emit([word])
        self.emit([len(words)], stream="lengths")
        self.ack(tup)


class Count(Noting):
    """Counts words."""

    def initialize(self, conf: Any, context: Any) -> None:
        super().initialize(conf, context)
        self.counts: dict[str, int] = {}

    def process(self, tup: Any) -> None:
        super().process(tup)
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1
        self.emit([word, self.counts[word]])


if __name__ == "__main__":
    globals()[sys.argv[1]]().run()
