"""The counterparts of storm-starter's other examples, against plain Python."""

from __future__ import annotations

import logging
from ast import literal_eval
from collections import Counter
from importlib import import_module

import pytest
from topology_bench import TopologyBench

from storm_on_spark import compile_topology

ROWS = 40
EXAMPLES = [
    "anchored_word_count",
    "in_order_delivery",
    "lambda_topology",
    "multiple_logger",
    "resource_aware",
    "stateful_topology",
]


def bench(name: str) -> TopologyBench:
    import rows

    conf = {rows.COUNT: ROWS, rows.PAUSE: 0}
    return TopologyBench(import_module(name).build(conf), conf)


def words() -> list[str]:
    import rows

    return [rows.word(number)[0] for number in range(ROWS)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_compiles(name: str) -> None:
    job = import_module(name)
    assert compile_topology(job.build(job.conf), job.conf).explain()


def test_words_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    import rows

    bench("anchored_word_count").play()
    found = dict(map(literal_eval, capsys.readouterr().out.splitlines()))
    assert found == Counter(word for number in range(ROWS) for word in rows.sentence(number)[0].split())


def test_functions_are_components(capsys: pytest.CaptureFixture[str]) -> None:
    bench("lambda_topology").feed("spout1", ["abc-def"])
    assert capsys.readouterr().out == "('Hello lambda:abc:so cool!', 999)\n"


def test_what_comes_out_of_order_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    checked = bench("in_order_delivery")
    checked.feed("spout", *((task, number) for number in range(5) for task in range(3)))
    assert capsys.readouterr().out == ""
    checked.feed("spout", [1, 7])
    assert capsys.readouterr().out == "1 7 != 5\n"


def test_loggers_have_names_and_levels(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    with caplog.at_level(logging.INFO):
        bench("multiple_logger").feed("word", ["storm"])
    assert capsys.readouterr().out == "('storm!!!!!!',)\n"
    assert Counter(record.name for record in caplog.records if "message of level" in record.message) == {
        "root": 6,
        "myapp": 6,
        "myapp.sub": 6,
    }


def test_a_cache_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    bench("resource_aware").play()
    assert capsys.readouterr().out.splitlines() == [str((word + "!!!!!!",)) for word in words()]


def test_sums_are_in_a_state(capsys: pytest.CaptureFixture[str]) -> None:
    import rows

    numbers = [rows.integer(number)[0] for number in range(ROWS)]
    summed = bench("stateful_topology")
    for number in numbers:
        summed.feed("spout", (number, 0, 0))
        summed.restart()
    assert capsys.readouterr().out.splitlines() == [str(sum(numbers[: end + 1])) for end in range(ROWS)]
