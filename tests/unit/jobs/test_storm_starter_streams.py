"""The counterparts of storm-starter's examples of joins and streams, against plain Python."""

from __future__ import annotations

from ast import literal_eval
from collections import Counter, defaultdict
from importlib import import_module
from typing import Any

import pytest
from topology_bench import TopologyBench

EXAMPLES = [
    "aggregate_example",
    "branch_example",
    "group_by_key_and_window_example",
    "join_bolt_example",
    "join_example",
    "state_query_example",
    "stateful_word_count",
    "typed_tuple_example",
    "windowed_word_count",
    "word_count_to_bolt",
]
ROWS = 60


@pytest.fixture
def lines(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Returns what an example prints."""
    import rows

    conf = {rows.COUNT: ROWS, rows.PAUSE: 0}
    TopologyBench(import_module(request.param).build(conf), conf).play(seconds=30)
    return capsys.readouterr().out.splitlines()


def example(name: str) -> Any:
    return pytest.mark.parametrize("lines", [name], indirect=True)


def made(kind: str) -> list[Any]:
    import rows

    found = [getattr(rows, kind)(number) for number in range(ROWS)]
    return [row[0] for row in found] if kind != "integer" else found


def values(lines: list[str]) -> list[Any]:
    return list(map(literal_eval, lines))


@example("windowed_word_count")
def test_words_that_occur_five_times(lines: list[str]) -> None:
    counts = Counter(word for text in made("sentence") for word in text.split())
    assert Counter(values(lines)) == Counter(pair for pair in counts.items() if pair[1] >= 5)


@example("stateful_word_count")
def test_counts_of_windows_are_added_up(lines: list[str]) -> None:
    assert dict(values(lines)) == Counter(made("word"))


@example("word_count_to_bolt")
def test_counts_reach_the_bolt(lines: list[str]) -> None:
    counts: Counter[str] = Counter()
    for line, word in zip(lines, made("word"), strict=True):
        counts[word] += 1
        assert line == f"wordCount[{word}] = {counts[word]}"


@example("branch_example")
def test_each_number_is_in_its_branch(lines: list[str]) -> None:
    assert lines == [f"{'ODD >' if row[0] % 2 else 'EVEN>'} {row[0]}" for row in made("integer")]


@example("join_example")
def test_squares_meet_cubes(lines: list[str]) -> None:
    assert values(lines) == [(n, (n**2, n**3)) for n in range(1, ROWS + 1)]


@example("join_bolt_example")
def test_genders_meet_ages(lines: list[str]) -> None:
    assert values(lines) == [(n, n, ("male", "female")[n % 2], n + 20) for n in range(ROWS)]


@example("state_query_example")
def test_queries_see_what_came_before(lines: list[str]) -> None:
    words = made("word")
    asked = [("nathan", "mike")[number % 2] for number in range(ROWS)]
    counts = [words[: number + 1].count(name) or None for number, name in enumerate(asked)]
    assert values(lines) == list(zip(asked, counts, strict=True))


@example("aggregate_example")
def test_the_mean_of_a_window(lines: list[str]) -> None:
    numbers = [row[0] for row in made("integer") if 0 < row[0] < 500]
    assert values(lines) == [sum(numbers) / len(numbers)]


@example("typed_tuple_example")
def test_numbers_are_grouped_ten_by_ten(lines: list[str]) -> None:
    expected = []
    rows = made("integer")
    for first in range(0, ROWS, 10):
        groups = defaultdict(list)
        for number, time, _ in rows[first : first + 10]:
            groups[time // 10_000].append(number)
        expected += groups.items()
    assert values(lines) == expected


@example("group_by_key_and_window_example")
def test_prices_of_a_sliding_window(lines: list[str]) -> None:
    import group_by_key_and_window_example as job

    quotes = [job.quote(number) for number in range(ROWS)]
    expected: Counter[Any] = Counter()
    for end in range(3, ROWS + 1, 3):
        groups = defaultdict(list)
        for symbol, price in quotes[max(0, end - 6) : end]:
            groups[symbol].append(price)
        for symbol, prices in groups.items():
            expected.update([str((symbol, prices)), str((symbol, max(prices)))])
    assert Counter(map(str, values(lines))) == expected
