"""Reading a definition takes time in proportion to its length, whatever is in it; what is too long is refused."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from storm_on_spark.xd.admin.completions import completions, job_completions
from storm_on_spark.xd.dsl import Code, DslError, parse_job, parse_stream
from storm_on_spark.xd.expressions import ExpressionError, parse_expression
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.modules.outside import delta

REGISTRY = LocalRegistry()
READERS: dict[str, Callable[[str], Any]] = {
    "stream": parse_stream,
    "job": parse_job,
    "completions": lambda text: completions(text, REGISTRY),
    "job completions": lambda text: job_completions(text, REGISTRY),
}

TEXTS: dict[str, Callable[[int], str]] = {
    "modules": lambda n: "|".join(f"a{number}:x" for number in range(n // 8)),
    "one module": lambda n: "a|" * (n // 2),
    "options": lambda n: "a " + " ".join(f"--o{number}=1" for number in range(n // 8)),
    "a name without an end": lambda n: "a" * n,
    "an option without an end": lambda n: "a --" + "a.a" * (n // 3),
    "blanks": lambda n: "a" + " " * n + "b",
    "blanks behind a colon": lambda n: "a:" + " " * n,
    "a name before a sign": lambda n: "a" * n + ">",
    "blanks before a sign": lambda n: " " * n + ">",
    "labels": lambda n: "a: " * (n // 3),
    "a channel": lambda n: "queue:" + "a:" * (n // 2),
    "a tap": lambda n: "tap:stream:" + "a." * (n // 2),
    "a quote without an end": lambda n: "a --x='" + "a" * n,
    "doubled quotes": lambda n: "a --x='" + "''" * (n // 2),
    "quotes in turn": lambda n: "a --x=b" + "'\"" * (n // 2),
    "signs in a value": lambda n: "a --x=" + ">" * n,
    "signs and blanks": lambda n: "a --x=>" + " " * n + "b",
    "splits": lambda n: "<" * n,
    "brackets": lambda n: "(" * n,
    "brackets in a value": lambda n: "(a --x=" + "(" * n,
    "brackets and quotes in a value": lambda n: "(a --x=(" + "''" * (n // 2),
}  # fmt: skip


def seconds(read: Callable[[str], Any], text: str) -> float:
    """Returns the least processor time of a few readings."""
    found = []
    for _ in range(3):
        began = time.process_time()
        with contextlib.suppress(DslError, ValueError):
            read(text)
        found.append(time.process_time() - began)
    return min(found)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", TEXTS)
def test_four_times_the_text_takes_about_four_times_as_long(text: str, reader: str) -> None:
    read, made = READERS[reader], TEXTS[text]
    # 16 times would be quadratic. A millisecond is more than what measuring adds.
    assert seconds(read, made(60_000)) < 10 * (seconds(read, made(15_000)) + 0.001)


@pytest.mark.parametrize("text", ["a" * 1_000_000, "<" * 100_000, "(" * 100_000, "a --x='" + "''" * 100_000])
def test_what_is_too_long_is_not_read(text: str) -> None:
    for parse in (parse_stream, parse_job):
        with pytest.raises(DslError, match="at most 65536 characters, got") as raised:
            parse(text)
        assert raised.value.code is Code.TOO_LONG
    with pytest.raises(ExpressionError, match="at most 4096 characters, got"):
        parse_expression(text)


@pytest.mark.parametrize("part", [",", "a decimal(", "a long,", "(,", "a array<"])
def test_the_columns_of_a_delta_sink_are_read_in_one_pass(part: str) -> None:
    (check,) = (option.check for option in delta.SINK.options if option.name == "columns" and option.check)
    assert seconds(check, part * (60_000 // len(part))) < 10 * (seconds(check, part * (15_000 // len(part))) + 0.001)
