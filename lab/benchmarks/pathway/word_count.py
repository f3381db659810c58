"""Counts words of sentences, in Pathway with a Python UDF: `python word_count.py SENTENCES FILE`.

Prints the seconds that it took: of processor time, and by the clock. Each change of a count comes out.
"""

from __future__ import annotations

import sys
import time
from itertools import cycle, islice
from pathlib import Path

import pathway as pw

count, lines = int(sys.argv[1]), Path(sys.argv[2]).read_text("utf-8").splitlines()
words = sum(len(line.split()) for line in islice(cycle(lines), count))
found = 0


class Sentence(pw.Schema):  # type: ignore[misc] # Pathway is not installed where types are checked
    text: str


@pw.udf  # type: ignore[untyped-decorator]
def split(text: str) -> list[str]:
    """Returns the words of a sentence."""
    return text.split()


def add(key: object, row: dict[str, int], time: int, is_addition: bool) -> None:
    """Sums up what comes out."""
    global found
    found += row["count"] if is_addition else -row["count"]


# A thousand sentences at once.
given = [(text, 2 * (at // 1000), 1) for at, text in enumerate(islice(cycle(lines), count))]
stream = pw.debug.table_from_rows(Sentence, given, is_stream=True)
split_up = stream.select(word=split(pw.this.text)).flatten(pw.this.word)
counted = split_up.groupby(pw.this.word).reduce(pw.this.word, count=pw.reducers.count())
pw.io.subscribe(counted, on_change=add)
before, began = time.process_time(), time.monotonic()
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
used, took = time.process_time() - before, time.monotonic() - began
assert found == words, (found, words)
print(used, took)
