"""The counterparts of storm-starter's Trident examples, against plain Python, in one process."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import rows

from storm_on_spark import LocalDRPC, Topology
from storm_on_spark.api.config import effective_conf
from storm_on_spark.plan.compile import compile_graph
from storm_on_spark.runtime.in_process import InProcessTopology

COUNT = 60
SENTENCES = [rows.sentence(number)[0] for number in range(COUNT)]


def conf_of(job: Any) -> dict[str, Any]:
    return {**job.conf, rows.COUNT: COUNT, "topology.trident.batch.emit.interval.millis": 1}


def printed(job: Any, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What an example prints until all batches are committed."""
    conf = conf_of(job)
    run = InProcessTopology(compile_graph(job.build(conf), effective_conf(conf)), "example")
    assert run.run().status == "COMPLETED"
    return capsys.readouterr().out.splitlines()


def asked(topology: Topology, conf: Any, ask: Callable[[str], str], questions: Sequence[str], until: str) -> list[Any]:
    """The answers to questions, asked until the first has an answer."""
    answers: list[Any] = []
    ended = threading.Event()
    run = InProcessTopology(compile_graph(topology, effective_conf(conf)), "example")
    thread = threading.Thread(target=lambda: run.run(lambda: not ended.is_set()), daemon=True)
    thread.start()
    try:
        while ask(questions[0]) != until:
            assert thread.is_alive()
        answers += [json.loads(ask(question)) for question in questions]
    finally:
        ended.set()
        thread.join(30)
    assert run.failure is None
    return answers


@pytest.mark.parametrize("name", ["trident_word_count", "trident_map_example"])
def test_words_are_counted_and_the_counts_can_be_asked_for(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    job = __import__(name)
    short = getattr(job, "SHORT", ())
    words = Counter(word for sentence in SENTENCES for word in sentence.split() if word not in short)
    questions = ["cow seven moon nature", "doctor", "nobody", "snow nobody dwarfs"]
    expected = [sum(words[word] for word in question.split()) for question in questions]
    with LocalDRPC({"drpc.request.timeout.secs": 60}) as drpc:
        topology = job.topology(conf_of(job), drpc)
        found = asked(topology, conf_of(job), lambda q: drpc.execute("words", q), questions, f"[[{expected[0]}]]")
    assert found == [[[count]] for count in expected]
    if short:
        assert Counter(capsys.readouterr().out.splitlines()) == Counter({w.upper(): n for w, n in words.items()})


def test_reach_is_the_number_of_different_followers() -> None:
    import trident_reach as reach

    pages = [*reach.TWEETERS]
    expected = [
        len({follower for tweeter in reach.TWEETERS[page] for follower in reach.FOLLOWERS.get(tweeter, ())})
        for page in pages
    ]
    with LocalDRPC({"drpc.request.timeout.secs": 60}) as drpc:
        found = asked(reach.topology(drpc), {}, lambda q: drpc.execute("reach", q), pages, f"[[{expected[0]}]]")
    assert found == [[[count]] for count in expected]


def test_min_and_max_of_devices(capsys: pytest.CaptureFixture[str]) -> None:
    import trident_min_max_of_devices as job

    batches = [job.devices(COUNT)[at : at + job.DEVICES] for at in range(0, COUNT, job.DEVICES)]
    expected = [f"DEBUG(device with min id): {list(min(batch, key=lambda row: row[0]))}" for batch in batches]
    expected += [f"DEBUG(device with max count): {list(max(batch, key=lambda row: row[1]))}" for batch in batches]
    assert sorted(printed(job, capsys)) == sorted(expected)


def test_min_and_max_of_vehicles(capsys: pytest.CaptureFixture[str]) -> None:
    import trident_min_max_of_vehicles as job

    expected = []
    for at in range(0, COUNT, job.BATCH):
        batch = job.rows(COUNT)[at : at + job.BATCH]
        slowest = min(batch, key=lambda row: row[0].max_speed)
        fastest = max(batch, key=lambda row: row[0].max_speed)
        expected += [f"DEBUG(slowest vehicle): [{slowest[0]}]", f"DEBUG(fastest driver): [{fastest[1]}]"]
        expected.append(f"DEBUG(least efficient): [{min((row[0] for row in batch), key=lambda v: v.efficiency)}]")
        expected.append(f"DEBUG(most efficient): [{max((row[0] for row in batch), key=lambda v: v.efficiency)}]")
    assert sorted(printed(job, capsys)) == sorted(expected)


def test_windows_go_on_from_batch_to_batch(capsys: pytest.CaptureFixture[str]) -> None:
    import trident_windowing as job

    count = sum(len(sentence.split()) for sentence in SENTENCES)
    expected = [min(end, job.LENGTH) for end in range(job.SLIDE, count + 1, job.SLIDE)]
    assert printed(job, capsys) == [f"DEBUG(words in the window): [{size}]" for size in expected]


def test_a_state_that_fails_some_batches_has_each_word_once(capsys: pytest.CaptureFixture[str]) -> None:
    import trident_debug_state as job

    lines = printed(job, capsys)
    assert lines.count(job.FAILS) > COUNT // 3 // job.EVERY
    shown: dict[str, int] = {}
    for word, _, count in (line.partition(" => ") for line in lines if line != job.FAILS):
        # A batch that comes again, as the other task let it fail, changes a value to what it was changed to before.
        assert int(count) >= shown.get(word, 0)
        shown[word] = int(count)
    assert shown == Counter(word for sentence in SENTENCES for word in sentence.split())
