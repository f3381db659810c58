"""The input that every contender gets: sentences of seven words whose frequencies follow Zipf's law."""

from __future__ import annotations

import random
from pathlib import Path

WORDS_PER_SENTENCE = 7
SENTENCES = 50_000
_VOCABULARY = 10_000


def sentences(count: int = SENTENCES) -> list[str]:
    """Returns sentences, the same in every process."""
    generator = random.Random(7)
    words = [f"word{number}" for number in range(_VOCABULARY)]
    weights = [1 / rank for rank in range(1, _VOCABULARY + 1)]
    chosen = generator.choices(words, weights, k=count * WORDS_PER_SENTENCE)
    return [" ".join(chosen[at : at + WORDS_PER_SENTENCE]) for at in range(0, len(chosen), WORDS_PER_SENTENCE)]


def sentences_file(path: Path) -> Path:
    """Writes them to `path`, one a line, and returns it."""
    path.write_text("\n".join(sentences()) + "\n", "utf-8")
    return path


def read_sentences(path: str) -> list[str]:
    """Returns the sentences of a file."""
    return Path(path).read_text("utf-8").splitlines()
