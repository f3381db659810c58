"""Every job through Spark, against an independent computation in plain Python."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter, deque
from pathlib import Path
from typing import Any

import pytest

JOBS = Path(__file__).parents[3] / "jobs"
sys.path.insert(0, str(JOBS))

import exclamation  # noqa: E402 # needs the path above
import reach  # noqa: E402
import rolling_top_words  # noqa: E402
import single_join  # noqa: E402
import word_count  # noqa: E402
import word_count_columnar  # noqa: E402

from storm_on_spark import Config  # noqa: E402
from storm_on_spark.spark.state import read_bolt_state, read_pending_roots  # noqa: E402
from storm_on_spark.testing import GATE, ManualClock, run_topology, running_topology  # noqa: E402

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


def documentation() -> Counter[str]:
    from pydoc_data.topics import topics

    return Counter("\n".join(topics.values()).split())


def counts(spark: Any, checkpoint: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for state in read_bolt_state(spark, checkpoint, "count").values():
        assert not found.keys() & state["counts"].keys(), "a word was counted by two tasks"
        found.update(state["counts"])
    return found


@pytest.mark.parametrize(
    ("job", "tasks"),
    [
        pytest.param(word_count, 1, marks=pytest.mark.soak),
        pytest.param(word_count, 2, marks=pytest.mark.representative),
        (word_count_columnar, 2),
        pytest.param(word_count_columnar, 5, marks=pytest.mark.soak),
    ],
    ids=["by-tuple-1", "by-tuple-2", "by-column-2", "by-column-5"],
)
def test_word_counts_equal_a_counter_whatever_the_number_of_tasks(
    job: Any, tasks: int, spark_session: Any, tmp_path: Path
) -> None:
    conf = {word_count.TASKS: tasks, Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path)}
    captured = run_topology(job.build(conf), conf=conf, spark=spark_session, capture=())
    expected = documentation()
    assert counts(spark_session, tmp_path) == expected
    assert read_pending_roots(spark_session, tmp_path) == []
    info = captured.info
    assert (info.status, info.acked, info.failed, info.pending) == ("COMPLETED", info.emitted, 0, 0)
    assert len(set(captured.acked())) == len(captured.acks) == info.emitted
    assert info.components["split"].emitted == info.components["count"].executed == expected.total()
    rows = job.report(spark_session, str(tmp_path), info)
    assert rows[0] == {"word": "the", "count": expected["the"]}
    assert sorted((row["count"] for row in rows), reverse=True) == [count for _, count in expected.most_common(20)]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "command",
    [
        # Executors in processes of their own, as on a cluster: `test_compiled_jobs.py`.
        pytest.param(["spark-submit", "--master", "local-cluster[2,1,1024]", "word_count.py"], marks=pytest.mark.soak),
        ["spark-submit", "--master", "local[1]", "word_count_columnar.py"],
        # `test_cli.py` starts topologies so.
        pytest.param(["storm-spark", "run", "--master", "local[1]", "word_count.py"], marks=pytest.mark.soak),
        # One operator executes all, in another JVM than the one that has the source's row.
        pytest.param(
            [
                "storm-spark",
                "run",
                "-c",
                "topology.partitions=1",
                "--master",
                "local-cluster[2,1,1024]",
                "word_count_columnar.py",
            ],
            marks=pytest.mark.soak,
        ),
    ],
    ids=lambda command: "-".join((command[0], *command[-2:])),
)
def test_word_counts_as_users_start_them(command: list[str], spark_session: Any, tmp_path: Path) -> None:
    folder = tmp_path / "text"
    folder.mkdir()
    text = " ".join(f"{number % 97} ähm word" for number in range(5_000))
    (folder / "lines").write_text(text.replace("word 5", "\nword\u00a05"))
    (folder / "one-line").write_text(text)
    programs = Path(sys.executable).parent
    options = ["--json", "--checkpoint", str(tmp_path / "checkpoint"), "-c", f"{word_count.INPUT}={folder}"]
    done = subprocess.run(
        [str(programs / command[0]), *command[1:], *options],
        cwd=JOBS,
        # spark-submit takes the first Python that it finds for the one that it belongs to.
        # For a job of seconds the optimizing compiler costs more than it gains.
        env={
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
        },
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    # Nothing but the document, also under spark-submit, which puts a job's standard error on standard output.
    result = json.loads(done.stdout)
    assert (result["acked"], result["failed"], result["pending"]) == (result["emitted"], 0, 0)
    assert result["acked"] > 100
    expected = Counter(" ".join(path.read_text() for path in folder.iterdir()).split())
    assert counts(spark_session, tmp_path / "checkpoint") == expected
    assert read_pending_roots(spark_session, tmp_path / "checkpoint") == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_job_says_what_it_is_doing_and_where_it_went_on(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("to be or not to be\n" * 100)
    checkpoint = tmp_path / "checkpoint"

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        options = ["--checkpoint", str(checkpoint), "-c", f"{word_count.INPUT}={tmp_path / 'text'}", *more]
        command = [sys.executable, str(JOBS / "word_count.py"), *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)

    first = run()
    said = first.stderr.splitlines()
    assert said[0] == "Starting Spark ..."
    assert any("  acked 100  failed 0" in line for line in said[:-1]), "before Spark's first micro-batch has ended"
    assert any(re.search(r"  first micro-batch runs, \d+ s(: `\w+` has executed |$)", line) for line in said)
    assert "continued from" not in first.stderr
    assert "word-count: COMPLETED" in said[-1]
    assert "be\t200" in first.stdout.splitlines()
    assert "Starting" not in first.stdout

    again = run().stderr
    assert f"continued from {checkpoint}, micro-batch " in again
    assert "finished before: nothing to do" in again


def test_exclamation_marks_every_word_twice(spark_session: Any) -> None:
    captured = run_topology(exclamation.build({exclamation.WORDS: 200}), spark=spark_session)
    words = captured.values("word")
    assert len(words) == 200
    assert Counter(captured.values("exclaim2")) == Counter((f"{word}!!",) for (word,) in words)
    assert len(captured.acked()) == len(set(captured.acked())) == 200
    assert captured.failed() == []


# Without Spark, `tests/unit/jobs/` runs this job, too.
@pytest.mark.soak
def test_rolling_top_words_rank_the_window_at_every_tick(spark_session: Any) -> None:
    phases = ["aaaab", "bbc", "", "ccd", "d", "", "", "abcd"]
    slots, top = 3, 2
    conf = {
        rolling_top_words.WINDOW_SECS: slots,
        rolling_top_words.EMIT_SECS: 1,
        rolling_top_words.TOP: top,
    }
    windows = ["".join(phases[max(0, number - slots + 1) : number + 1]) for number in range(len(phases))]
    emits = [
        [(word, Counter(window)[word]) for word in sorted({*earlier, *window})]
        for earlier, window in zip(["", *windows], windows, strict=False)
    ]
    rankings: list[Any] = [()]
    for window in windows:
        ranking = tuple(sorted(Counter(window).items(), key=lambda item: (-item[1], item[0]))[:top])
        if ranking != rankings[-1]:
            rankings.append(ranking)
    items: list[Any] = []
    for number, phase in enumerate(phases):
        items += [*phase, GATE(str(number))]

    clock = ManualClock()
    with running_topology(rolling_top_words.build(conf), {"words": items}, conf, clock, spark_session) as running:
        emitted = 0
        for number in range(len(phases)):
            total = len("".join(phases[: number + 1]))
            running.wait_until(lambda captured, n=total: len(captured.acks) == n)  # type: ignore[misc]
            clock.advance(seconds=1)
            emitted += len(emits[number])
            captured = running.wait_until(
                lambda captured, n=emitted: len(captured.values("counter")) == n  # type: ignore[misc]
            )
            newest = captured.values("counter")[emitted - len(emits[number]) :]
            assert sorted(newest) == emits[number]
            if number + 1 == len(phases):
                running.wait_until(lambda captured: len(captured.values("total")) == len(rankings) - 1)
            running.open_gate(str(number))
        captured = running.await_completion()
    assert [ranking for (ranking,) in captured.values("total")] == rankings[1:]
    assert captured.failed() == []


def test_single_join_joins_everyone_and_acks_both_sides(spark_session: Any, tmp_path: Path) -> None:
    conf = {single_join.PEOPLE: 300, Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path)}
    # A clock that stands still: nobody's partner is late.
    captured = run_topology(single_join.build(conf), conf=conf, clock=ManualClock(), spark=spark_session)
    assert sorted(captured.values("join")) == [
        (person, ("male", "female")[person % 2], 20 + person) for person in range(300)
    ]
    assert len(set(captured.acked("genders"))) == len(captured.acked("genders")) == 300
    assert len(set(captured.acked("ages"))) == len(captured.acked("ages")) == 300
    assert captured.failed() == []
    assert read_pending_roots(spark_session, tmp_path) == []
    for state in read_bolt_state(spark_session, tmp_path, "join").values():
        assert state["pending"] == state["old"] == {}


def test_single_join_fails_whom_nobody_joins_and_joins_the_replay(spark_session: Any) -> None:
    conf = {single_join.EXPIRE_SECS: 5}
    clock = ManualClock()
    inputs = {"genders": [[1, "female"]], "ages": [GATE("late"), [1, 33]]}
    with running_topology(single_join.build(conf), inputs, conf, clock, spark_session) as running:
        running.wait_until(lambda captured: captured.info.components["join"].executed == 1)
        clock.advance(seconds=5)
        running.wait_until(lambda captured: captured.info.components["join"].executed >= 3)  # a tick for each task
        assert running.captured().failed() == []
        clock.advance(seconds=5)
        running.wait_until(lambda captured: captured.failed("genders") == [0])
        running.open_gate("late")
        captured = running.await_completion()
    assert captured.values("genders") == [(1, "female"), (1, "female")]
    assert captured.values("join") == [(1, "female", 33)]
    assert (captured.acked("genders"), captured.acked("ages")) == ([0], [0])


def test_reach_visits_all_that_can_be_reached_and_acks_when_it_has(spark_session: Any, tmp_path: Path) -> None:
    seeds = ["CLASSES", "STRINGS"]
    conf = {reach.SEEDS: ",".join(seeds), Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path)}
    captured = run_topology(reach.build(conf), conf=conf, spark=spark_session, capture=())
    expected = []
    for seed in seeds:
        distances = {seed: 0}
        waiting = deque([seed])
        while waiting:
            topic = waiting.popleft()
            for other in reach.related(topic):
                if other not in distances:
                    distances[other] = distances[topic] + 1
                    waiting.append(other)
        expected += [{"seed": seed, "topic": topic, "distance": far} for topic, far in distances.items()]
    assert len(expected) > 60
    found = reach.report(spark_session, str(tmp_path), captured.info)
    assert found == sorted(expected, key=lambda row: (row["seed"], row["distance"], row["topic"]))
    assert sorted(captured.acked()) == sorted(seeds)
    assert captured.failed() == []
    assert read_pending_roots(spark_session, tmp_path) == []
