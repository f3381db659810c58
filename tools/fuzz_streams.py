"""Mutates texts of streams, jobs and expressions: each is one, or has an error with a place. `make fuzz-streams`.

What is checked: a text becomes a topology, or the steps of a job, or a `DslError`, whose position is in the text; an
expression has a value or raises an `ExpressionError`, whose position is in it; what TAB proposes begins with the text;
none takes longer than a second.
"""

from __future__ import annotations

import argparse
import random
import time

from storm_on_spark.xd.admin.checks import check_job
from storm_on_spark.xd.admin.completions import completions, job_completions
from storm_on_spark.xd.dsl import DslError, parse_stream
from storm_on_spark.xd.expressions import ExpressionError, parse_expression
from storm_on_spark.xd.fused import build
from storm_on_spark.xd.modules.local_registry import LocalRegistry

STREAMS = [
    "ticktock = time --fixedDelay=1 --format='yyyy-MM-dd''T''HH:mm' | log",
    "time | filter --expression=payload.contains('1') | first:transform --expression=\"payload + 'x'\" | log",
    "queue:orders > log",
    "rate --maxMessages=3 > topic:numbers",
    "tap:stream:s.label.1 > json-to-tuple | null",
    ":s.label > file --dir=out --format=csv",
    "file --dir=in --pattern=*.txt --once=true | aggregator --count=2 | splitter | log",
]
JOBS = [
    "nightly = filejdbc --resources='#{jobParameters[''file'']}' --names=a,b --tableName=t || timestampfile",
    "<timestampfile & a:timestampfile --append=true || script --location=/data/a.py> || b:timestampfile",
    "sparksql --input=in --output=out --query=\"SELECT a FROM input WHERE b > 'x & y'\" || <timestampfile>",
    "timestampfile | FAILED = a:timestampfile --append=true | 'NO *' = $END | \"*\" = b || b:timestampfile",
    "<(timestampfile || timestampfile | FAILED = $STOP) & timestampfile | ODD = timestampfile> || timestampfile",
]
EXPRESSIONS = [
    "payload.a[1] * 2 + -1 >= 3.5 && !headers.b.isEmpty() ? 'yes' : \"no\"",
    "payload.text.substring(1, 2).replace('a', 'b').split(' ').size() % 2 == 0",
    "payload['it''s'] == null or not (payload.text.indexOf('x') lt 0)",
]
PARTS = [
    "| FAILED = ",
    "| '*'=$FAIL",
    *" |><=&-+*/%!?:.,()[]'\"\n\0",
    "--",
    "tap:",
    "''",
    '""',
    "payload",
    "$",
    "ß",
    "\ud800",
    "9" * 20,
    "(" * 60,
    "!" * 60,
]
PAYLOADS = [None, True, 7, -1.5, "a b", {"a": [1, 2], "text": "abc", "it's": None}, [1, "x", []]]
MOST_SECS = 1.0


def mutated(text: str, choose: random.Random) -> str:
    """Returns a text with a few changes."""
    for _ in range(choose.randint(1, 3)):
        at, until = sorted(choose.randrange(len(text) + 1) for _ in range(2))
        match choose.randrange(4):
            case 0:
                text = text[:at] + choose.choice(PARTS) + text[at:]
            case 1:
                text = text[:at] + text[min(until, at + 8) :]
            case 2:
                text = text[:at] + text[at:until] * choose.randint(1, 3) + text[until:]
            case _:
                text = text[:at] + choose.choice([*STREAMS, *JOBS, *EXPRESSIONS])[: choose.randrange(40)] + text[until:]
    return text[:5000]


def check(error: DslError | ExpressionError, text: str) -> None:
    """Checks that an error can be shown, and points into the text."""
    if not 0 <= error.position <= len(text) or not str(error):
        raise AssertionError(repr(text)) from error


def read_stream(text: str) -> bool:
    """Reads a definition; returns whether it is one."""
    try:
        build(parse_stream(text), text)
    except DslError as error:
        check(error, text)
        return False
    return True


def read_job(text: str, registry: LocalRegistry) -> bool:
    """Reads the definition of a job; returns whether it is one."""
    try:
        check_job(None, text, registry)
    except DslError as error:
        check(error, text)
        return False
    return True


def propose(text: str, registry: LocalRegistry) -> None:
    """Asks how texts go on."""
    for found in (*completions(text, registry, ["s"]), *job_completions(text, registry)):
        if not found.startswith(text) or found == text:
            raise AssertionError((text, found))


def read_expression(text: str, payload: object) -> bool:
    """Evaluates an expression; returns whether it has a value."""
    try:
        parse_expression(text).value(payload, {"b": ""})
    except ExpressionError as error:
        check(error, text)
        return False
    return True


def fuzz(seconds: float, seed: int) -> dict[str, int]:
    """Returns how many texts were read, and how many of them were valid."""
    choose = random.Random(seed)
    registry = LocalRegistry()
    kinds = ("streams", "valid streams", "jobs", "valid jobs", "expressions", "expressions with a value")
    done = dict.fromkeys(kinds, 0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        stream = mutated(choose.choice(STREAMS), choose)
        job = mutated(choose.choice(JOBS), choose)
        expression = mutated(choose.choice(EXPRESSIONS), choose)
        began = time.process_time()
        done["valid streams"] += read_stream(stream)
        done["valid jobs"] += read_job(job, registry)
        propose(choose.choice([stream, job]), registry)
        done["expressions with a value"] += read_expression(expression, choose.choice(PAYLOADS))
        assert time.process_time() - began < MOST_SECS, (stream, job, expression)
        done["streams"] += 1
        done["jobs"] += 1
        done["expressions"] += 1
    return done


def main() -> None:
    """Runs the fuzzer; an input that breaks a rule ends it with a traceback."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    print(", ".join(f"{count} {what}" for what, count in fuzz(options.seconds, options.seed).items()))


if __name__ == "__main__":
    main()
