"""The language of jobs, which steps come next, and what a launch fills."""

from __future__ import annotations

from itertools import count
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.xd.admin.jobs.progress import Progress, progress
from storm_on_spark.xd.dsl import Code, DslError, Flow, Module, Sequence, parse_job
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.steps import ParameterError, check_steps
from storm_on_spark.xd.tree.jobs import Status, StepNode


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
        ("<a>", {"split": ["a"]}),
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
        ("a | b", Code.TRANSITION, 5),
        ("a | *=b", Code.TRANSITION, 4),
        ("a | ''=b", Code.TRANSITION, 4),
        ("a | 'F=b", Code.TRANSITION, 4),
        ("a | F=b | F=c", Code.TRANSITION, 10),
        ("a | F=$OFF", Code.TRANSITION, 6),
        ("a || b | F=a", Code.TRANSITION, 11),
        ("a | F=a", Code.TRANSITION, 6),
        ("a | F=", Code.EXPECTED_MODULE, 6),
        ("a | F='b'", Code.EXPECTED_MODULE, 6),
        ("a | F=x:b || x:c", Code.DUPLICATE_LABEL, 6),
        ("j = a | F=j", Code.NAMED_LIKE_MODULE, 10),
        (" || ".join(f"a{number} | F=b{number}" for number in range(51)), Code.TOO_LONG, 723),
        ("a > b", Code.UNEXPECTED_TEXT, 2),
        ("a b", Code.UNEXPECTED_TEXT, 2),
        ("<a & b", Code.UNEXPECTED_TEXT, 6),
        ("<a & >", Code.EXPECTED_MODULE, 5),
        ("<>", Code.EXPECTED_MODULE, 1),
        ("<a & b>>", Code.UNEXPECTED_TEXT, 7),
        ("a & b", Code.UNEXPECTED_TEXT, 2),
        ("a || a:b", Code.DUPLICATE_LABEL, 5),
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


PIECES = st.sampled_from(
    ["a", "b:c", "|", "||", "| F=", "'*'=", "$END", "<", "&", ">", "--x=1", " ", "'", '"', "=", "j ="]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=20).map("".join))
def test_any_text_is_a_job_or_an_error_within_it(text: str) -> None:
    try:
        parse_job(text)
    except DslError as error:
        assert 0 <= error.position <= len(text)  # noqa: PT017 # also no error is right


FLOW = parse_job("load || <report || mail & count> || clean").flow
HANDLED = parse_job(
    "load | FAILED = tell | 'NO *' = $STOP | 'NO ROWS' = clean | '*' = $FAIL | DONE = report || report"
    " || <a | FAILED = mend & b | ODD = $END> || clean | FAILED = tell"
).flow
ON = {"load": "DONE", "report": "COMPLETED"}


def nodes(states: Any) -> dict[str, StepNode]:
    """Returns steps; one that ended with its own exit status has completed."""
    kinds = get_args(Status)
    return {
        label: StepNode(status=state, execution=1)
        if state in kinds
        else StepNode(status="COMPLETED", execution=1, exit_status=state)
        for label, state in states.items()
    }


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
        # An exit status of its own leads on only by a transition, or behind the last step.
        ({"load": "ODD"}, "FAILED", ()),
        ({**dict.fromkeys(["load", "report", "mail", "count"], "COMPLETED"), "clean": "ODD"}, "COMPLETED", ()),
    ],
)
def test_which_steps_come_next(states: Any, status: str | None, following: tuple[str, ...]) -> None:
    found = progress(FLOW, nodes(states))
    assert (found.status, found.next) == (status, following)


@pytest.mark.parametrize(
    ("states", "status", "following", "again"),
    [
        ({"load": "DONE"}, None, ("report",), ()),
        ({"load": "FAILED"}, None, ("tell",), ()),
        ({"load": "FAILED", "tell": "STARTED"}, None, (), ()),
        # An aside ends its sequence: what was handled has not failed.
        ({"load": "FAILED", "tell": "COMPLETED"}, "COMPLETED", (), ()),
        ({"load": "FAILED", "tell": "FAILED"}, "FAILED", (), ("tell",)),
        # What says most of the exit status counts; '*' is for all others, also for COMPLETED.
        ({"load": "NO ROWS"}, None, ("clean",), ()),
        ({"load": "NO DISK"}, "STOPPED", (), ("load",)),
        ({"load": "COMPLETED"}, "FAILED", (), ("load",)),
        # No transition is for a step that was stopped.
        ({"load": "STOPPED"}, "STOPPED", (), ("load",)),
        ({"load": "NO ROWS", "clean": "COMPLETED"}, "COMPLETED", (), ()),
        ({"load": "NO ROWS", "clean": "ODD"}, "FAILED", (), ("clean",)),
        # Within a split a sequence ends for itself.
        ({**ON, "a": "FAILED", "b": "STARTED"}, None, ("mend",), ()),
        ({**ON, "a": "FAILED", "mend": "COMPLETED", "b": "ODD"}, None, ("clean",), ()),
        ({**ON, "a": "FAILED", "mend": "COMPLETED", "b": "FAILED"}, "FAILED", (), ("b",)),
        ({**ON, "a": "FAILED", "mend": "FAILED", "b": "FAILED"}, "FAILED", (), ("mend", "b")),
        ({**ON, "a": "COMPLETED", "b": "COMPLETED", "clean": "FAILED"}, None, ("tell",), ()),
    ],
)
def test_where_transitions_lead(states: Any, status: str | None, following: Any, again: Any) -> None:
    found = progress(HANDLED, nodes(states))
    assert (found.status, found.next, found.broken) == (status, following, again)


def test_a_job_that_is_to_stop_starts_nothing_and_waits_for_what_runs() -> None:
    running = progress(FLOW, nodes({"load": "COMPLETED", "count": "STARTED"}), stopping=True)
    assert (running.status, running.next) == (None, ())
    assert progress(FLOW, nodes({"load": "COMPLETED"}), stopping=True).status == "STOPPED"
    assert progress(FLOW, nodes({"load": "FAILED"}), stopping=True).status == "FAILED"
    assert progress(HANDLED, nodes({"load": "FAILED"}), stopping=True).status == "STOPPED"


@st.composite
def job_texts(draw: st.DrawFn) -> str:
    """Draws a job of steps s0, s1, ... with transitions forwards and aside."""
    labels = count()

    def flow(level: int) -> str:
        parts = []
        for _ in range(draw(st.integers(1, 3))):
            if level and draw(st.booleans()):
                parts.append(f"<{flow(level - 1)} & {flow(level - 1)}>")
                continue
            step = f"s{next(labels)}"
            for status in draw(st.lists(st.sampled_from(["FAILED", "ODD", "'*'"]), unique=True)):
                step += f" | {status} = {draw(st.sampled_from(['$END', '$FAIL', '$STOP', 'aside']))}"
            parts.append(step)
        return " || ".join(parts)

    return flow(2)


@given(job_texts(), st.randoms(use_true_random=False))
def test_a_job_ends_and_runs_no_step_twice_and_a_restart_ends_it(text: str, random: Any) -> None:
    flow = parse_job(text).flow
    states: dict[str, Any] = {}

    def run(ends: list[str]) -> Progress:
        while (found := progress(flow, nodes(states))).status is None:
            assert not set(found.next) & states.keys()
            states.update(dict.fromkeys(found.next, "STARTED"))
            running = sorted(label for label, state in states.items() if state == "STARTED")
            assert running, "it neither goes on nor ends"
            states[random.choice(running)] = random.choice(ends)
        return found

    first = run(["COMPLETED", "FAILED", "ODD"])
    assert bool(first.broken) == (first.status != "COMPLETED")
    # What a restart keeps leads again to the steps that are run again.
    for label in first.broken:
        del states[label]
    kept = dict(states)
    assert set(progress(flow, nodes(states)).next) == set(first.broken)
    run(["COMPLETED"])
    assert kept.items() <= states.items()


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
