"""The language of jobs, which steps come next, and what a launch fills."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.xd.admin.jobs.progress import progress
from storm_on_spark.xd.dsl import Code, DslError, Flow, Module, Sequence, Split, parse_job
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.steps import ParameterError, check_steps


def shape(flow: Flow) -> Any:
    """Returns a flow as labels, lists for sequences and sets for splits."""
    if isinstance(flow, Module):
        return flow.label
    if isinstance(flow, Sequence):
        return [shape(part) for part in flow.parts]
    return {"split": [shape(part) for part in flow.branches]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a", "a"),
        ("a||b", ["a", "b"]),
        ("a --x='1 || 2' || b", ["a", "b"]),
        ("x:a || y:a", ["x", "y"]),
        ("<a & b>", {"split": ["a", "b"]}),
        ("<a || b & c> || d", [{"split": [["a", "b"], "c"]}, "d"]),
        ("a || <b & <c & d> || e>", ["a", {"split": ["b", [{"split": ["c", "d"]}, "e"]]}]),
        ("<a>", "a"),
        ("nightly = a\n|| b", ["a", "b"]),
    ],
)
def test_what_a_text_says(text: str, found: Any) -> None:
    assert shape(parse_job(text).flow) == found


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("", Code.EMPTY, 0),
        ("  ", Code.EMPTY, 2),
        ("a ||", Code.EXPECTED_MODULE, 4),
        ("|| a", Code.EXPECTED_MODULE, 0),
        ("a | b", Code.UNEXPECTED_TEXT, 2),
        ("a | FAILED=b", Code.UNEXPECTED_TEXT, 2),
        ("a > b", Code.UNEXPECTED_TEXT, 2),
        ("a b", Code.UNEXPECTED_TEXT, 2),
        ("<a & b", Code.UNEXPECTED_TEXT, 6),
        ("<a & >", Code.EXPECTED_MODULE, 5),
        ("<>", Code.EXPECTED_MODULE, 1),
        ("<a & b>>", Code.UNEXPECTED_TEXT, 7),
        ("a & b", Code.UNEXPECTED_TEXT, 2),
        ("a || a", Code.DUPLICATE_LABEL, 5),
        ("<a & b:a> || b:c", Code.DUPLICATE_LABEL, 13),
        ("a --x", Code.EXPECTED_OPTION, 2),
        ("a --x=&", Code.EXPECTED_VALUE, 6),
        ("a --x='b", Code.UNCLOSED_QUOTE, 6),
        ("j = a || j", Code.NAMED_LIKE_MODULE, 9),
        ("queue:a > b", Code.UNEXPECTED_TEXT, 8),
        ("<" * 21 + "a" + ">" * 21, Code.TOO_LONG, 20),
        (" || ".join(f"a{number}" for number in range(101)), Code.TOO_LONG, 690),
        ("a" * 65_537, Code.TOO_LONG, 0),
    ],
)
def test_what_is_no_job(text: str, code: Code, position: int) -> None:
    with pytest.raises(DslError) as raised:
        parse_job(text)
    assert (raised.value.code, raised.value.position) == (code, position)


PIECES = st.sampled_from(["a", "b:c", "|", "||", "<", "&", ">", "--x=1", " ", "'", '"', "=", "j ="])


@given(st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=20).map("".join))
def test_any_text_is_a_job_or_an_error_within_it(text: str) -> None:
    try:
        parse_job(text)
    except DslError as error:
        assert 0 <= error.position <= len(text)  # noqa: PT017 # also no error is right


FLOW = parse_job("load || <report || mail & count> || clean").flow


@pytest.mark.parametrize(
    ("states", "status", "following"),
    [
        ({}, None, ("load",)),
        ({"load": "STARTED"}, None, ()),
        ({"load": "STARTING"}, None, ()),
        ({"load": "FAILED"}, "FAILED", ()),
        ({"load": "COMPLETED"}, None, ("report", "count")),
        ({"load": "COMPLETED", "report": "COMPLETED", "count": "STARTED"}, None, ("mail",)),
        # A branch has failed: the other one goes on, and the split waits for it.
        ({"load": "COMPLETED", "report": "FAILED", "count": "STARTED"}, None, ()),
        ({"load": "COMPLETED", "count": "FAILED", "report": "COMPLETED"}, None, ("mail",)),
        ({"load": "COMPLETED", "report": "FAILED", "count": "COMPLETED"}, "FAILED", ()),
        ({"load": "COMPLETED", "report": "STOPPED", "count": "COMPLETED"}, "STOPPED", ()),
        ({"load": "COMPLETED", "report": "STOPPED", "count": "FAILED"}, "FAILED", ()),
        (dict.fromkeys(["load", "report", "mail", "count"], "COMPLETED"), None, ("clean",)),
        (dict.fromkeys(["load", "report", "mail", "count", "clean"], "COMPLETED"), "COMPLETED", ()),
    ],
)
def test_which_steps_come_next(states: Any, status: str | None, following: tuple[str, ...]) -> None:
    found = progress(FLOW, states)
    assert (found.status, found.next) == (status, following)


def test_a_job_that_is_to_stop_starts_nothing_and_waits_for_what_runs() -> None:
    running = progress(FLOW, {"load": "COMPLETED", "count": "STARTED"}, stopping=True)
    assert (running.status, running.next) == (None, ())
    assert progress(FLOW, {"load": "COMPLETED"}, stopping=True).status == "STOPPED"
    assert progress(FLOW, {"load": "FAILED"}, stopping=True).status == "FAILED"


FLOWS = st.recursive(
    st.just("x"),
    lambda inner: st.tuples(st.booleans(), st.lists(inner, min_size=2, max_size=3)),
    max_leaves=12,
)


@given(FLOWS, st.randoms(use_true_random=False))
def test_a_job_whose_steps_complete_in_any_order_runs_each_once(plan: Any, random: Any) -> None:
    labels = iter(range(100))

    def made(part: Any) -> Flow:
        if part == "x":
            name = f"s{next(labels)}"
            return Module(name, name)
        parts = tuple(made(each) for each in part[1])
        return Sequence(parts) if part[0] else Split(parts)

    flow = made(plan)
    states: dict[str, Any] = {}
    while (found := progress(flow, states)).status is None:
        assert not set(found.next) & states.keys()
        states.update(dict.fromkeys(found.next, "STARTED"))
        running = sorted(label for label, state in states.items() if state == "STARTED")
        assert running, "it neither goes on nor ends"
        states[random.choice(running)] = "COMPLETED"
    assert found.status == "COMPLETED"
    assert set(states.values()) == {"COMPLETED"}
    assert len(states) == next(labels)


def test_a_launch_fills_options() -> None:
    text = "timestampfile --directory=/data/#{jobParameters['day']} --append=#{jobParameters['more']}"
    job = parse_job(text, "j")
    registry = LocalRegistry()
    check_steps(job, text, registry)
    (part,) = check_steps(job, text, registry, {"day": "7", "more": "true", "unused": "x"})
    assert part.values("j", text)["directory"] == "/data/7"
    with pytest.raises(ParameterError, match="Expected the parameter 'more', which step timestampfile needs; given: d"):
        check_steps(job, text, registry, {"day": "7"})
    with pytest.raises(DslError, match=r"XD114E.*Expected true or false, got 'perhaps'"):
        check_steps(job, text, registry, {"day": "7", "more": "perhaps"})


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("nothing", Code.UNKNOWN_MODULE),
        ("log", Code.UNKNOWN_MODULE),
        ("timestampfile --x=#{jobParameters['a']}", Code.UNKNOWN_OPTION),
        ("timestampfile --fileName=../x", Code.BAD_VALUE),
        ("script --location=x.txt", Code.BAD_VALUE),
        ("script", Code.MISSING_OPTION),
        ("sparkapp --appJar=--conf", Code.BAD_VALUE),
        ("sparkapp --appJar=a.py --conf=x=1", Code.BAD_VALUE),
        ("sparkapp --appJar=a.py --programArgs='a \"'", Code.BAD_VALUE),
        ("sparkapp --appJar=a.py --master='local --conf x'", Code.BAD_VALUE),
        ("sparksql --input=a --output=b --query='DROP TABLE a'", Code.BAD_VALUE),
        ("filejdbc --resources=a --names='a; DROP TABLE b'", Code.BAD_VALUE),
        ("filejdbc --resources=a --names=a --tableName='a b'", Code.BAD_VALUE),
    ],
)
def test_steps_that_make_no_sense(text: str, code: Code) -> None:
    with pytest.raises(DslError) as raised:
        check_steps(parse_job(text, "j"), text, LocalRegistry())
    assert raised.value.code == code
