"""Both word counts, part by part, without Spark."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import word_count
import word_count_columnar

from storm_on_spark import ConfigError, InvalidTopologyError, compile_topology
from storm_on_spark.testing import BoltTester, SpoutTester, make_tuple, run_bolt, run_spout

TEXT = "To be, or not to be:\r\n\n   \n\tthat is the question  \nno end"


def words_of(collector: Any) -> Counter[str]:
    return Counter(word for (sentence,) in collector.values() for word in sentence.split())


def test_the_spout_emits_every_line_that_is_not_blank(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text(TEXT, newline="")
    collector = run_spout(word_count.SentenceSpout(str(file)))
    assert collector.values() == [("To be, or not to be:",), ("\tthat is the question",), ("no end",)]
    assert [emission.message_id for emission in collector.emitted] == [(0, 0), (0, 27), (0, 51)]


def test_the_default_text_is_pythons_documentation() -> None:
    from pydoc_data.topics import topics

    collector = run_spout(word_count.SentenceSpout())
    assert words_of(collector) == Counter(" ".join(topics.values()).split())


def test_a_folder_is_read_file_by_file_and_shared_among_tasks(tmp_path: Path) -> None:
    for name in ("b/c.txt", "a.txt", "d.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{name} one\n{name} two\n")
    seen = []
    for index in range(2):
        tester = SpoutTester(word_count.SentenceSpout(str(tmp_path)), tasks=2, task_index=index)
        tester.next_tuple(calls=10)
        assert tester.spout.exhausted()
        seen.append([sentence for (sentence,) in tester.collector.values()])
    assert seen == [["a.txt one", "a.txt two", "d.txt one", "d.txt two"], ["b/c.txt one", "b/c.txt two"]]


def test_bytes_that_are_no_text_and_lines_without_end_are_read_all_the_same(tmp_path: Path) -> None:
    source = random.Random(3)
    data = source.randbytes(200_000) + b" " + b"word " * 50_000 + b"x" * 200_000 + b"\n" + "ähm ".encode() * 40_000
    (tmp_path / "data").write_bytes(data)
    collector = run_spout(word_count.SentenceSpout(str(tmp_path / "data")))
    assert max(len(sentence) for (sentence,) in collector.values()) <= word_count.MAX_LINE_BYTES
    expected = Counter(data.decode("utf-8", errors="replace").split())
    found = words_of(collector)
    # A word longer than a line may be is cut; all else is as it was.
    assert found.pop("x" * word_count.MAX_LINE_BYTES) == 200_000 // word_count.MAX_LINE_BYTES
    assert found.pop("x" * (200_000 % word_count.MAX_LINE_BYTES)) == 1
    assert expected.pop("x" * 200_000) == 1
    assert found == expected


def test_a_restarted_spout_goes_on_behind_the_last_line_and_reads_failed_ones_again(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text("one\ntwo\nthree\nfour\n")
    for crash_at in range(5):
        tester = SpoutTester(word_count.SentenceSpout(str(file)))
        tester.next_tuple(calls=crash_at)
        # A crash closes the files of the process that it ends.
        tester.spout.close()
        tester.restart()
        if crash_at >= 2:
            tester.fail((0, 4))
        tester.next_tuple(calls=6)
        expected = ["one", "two", "three", "four"]
        if crash_at >= 2:
            expected.insert(crash_at, "two")
        assert [sentence for (sentence,) in tester.collector.values()] == expected
        assert tester.spout.exhausted()
        tester.close()


def test_what_is_saved_of_the_spout_is_small(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"a-file-with-a-long-name-{number}.txt").write_text("words\n")
    tester = SpoutTester(word_count.SentenceSpout(str(tmp_path)))
    tester.next_tuple(calls=20)
    assert tester.saved_bytes() < 1000
    tester.close()


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"word.count.input": "/no/such"}, "word.count.input names '/no/such', which does not exist"),
        ({"word.count.input": "{tmp}"}, "a folder without any files"),
    ],
)
def test_input_that_is_not_there_is_refused_before_anything_runs(
    conf: dict[str, Any], message: str, tmp_path: Path
) -> None:
    given = {key: value.replace("{tmp}", str(tmp_path)) for key, value in conf.items()}
    with pytest.raises(ConfigError, match=message):
        word_count.build(given)


def test_a_number_of_tasks_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidTopologyError, match='bolt "count": the parallelism must be an int of at least 1'):
        word_count.build({"word.count.tasks": 0})


def test_split_and_count_per_tuple() -> None:
    sentence = make_tuple([TEXT], ["sentence"])
    result = run_bolt(word_count.SplitSentence(), [sentence])
    assert [word for (word,) in result.values()] == TEXT.split()
    assert all(emission.anchors == (sentence,) for emission in result.emitted)
    tester = BoltTester(word_count.WordCount())
    for word in TEXT.split():
        tester.execute(make_tuple([word], ["word"]))
        tester.restart()
    assert tester.bolt.counts == Counter(TEXT.split())


def test_split_and_count_by_column() -> None:
    sentences = ["to be", "", "  or\tnot\u2003to ", "be"]
    result = run_bolt(word_count_columnar.SplitSentences(), [pa.record_batch({"sentence": sentences})])
    assert [word for (word,) in result.values()] == " ".join(sentences).split()
    assert result.emitted[0].parents == (0, 0, 2, 2, 2, 3)
    tester = BoltTester(word_count_columnar.CountWords())
    for emission in result.emitted * 2:
        tester.execute(emission.batch)
        tester.restart()
    assert Counter(tester.bolt.counts) == Counter(" ".join(sentences * 2).split())


def test_by_column_blanks_are_what_python_takes_for_blanks() -> None:
    # Beyond the first plane there are no blanks.
    every = ["a" + chr(code) + "b" for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    result = run_bolt(word_count_columnar.SplitSentences(), [pa.record_batch({"sentence": every})])
    assert [word for (word,) in result.values()] == [word for text in every for word in text.split()]


@pytest.mark.parametrize("job", [word_count, word_count_columnar])
def test_splitting_is_fused_with_the_source_and_counting_is_stateful(job: Any) -> None:
    plan = compile_topology(job.build(job.conf)).graph
    assert [(stage.kind.value, stage.components) for stage in plan.stages] == [
        ("source", ("sentences", "split")),
        ("stateful", ("count",)),
        ("acker", ()),
    ]
    assert plan.components["split"].reason.startswith("proved")
