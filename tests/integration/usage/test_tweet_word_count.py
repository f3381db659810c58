"""The tweet word count through Spark, beside the batch job that counts the same."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "jobs"))

import tweet_word_count  # needs the path above
import word_count

from storm_on_spark import Config
from storm_on_spark.testing import BoltTester, make_tuple, run_spout, run_topology


def test_counters_are_cleared_once_they_are_emitted() -> None:
    tester = BoltTester(tweet_word_count.WindowCount(5))
    for word in ("to", "be", "to"):
        tester.execute(make_tuple([word], ["word"]))
    tester.tick()
    assert tester.collector.values() == [("be", 1), ("to", 2)]
    tester.execute(make_tuple(["be"], ["word"]))
    tester.tick()
    assert tester.collector.values()[2:] == [("be", 1)]


def test_the_stream_and_the_batch_job_count_the_same(spark_session: Any, tmp_path: Path) -> None:
    tweets = tmp_path / "tweets.jsonl"
    texts = [f"storm {number % 7} über  spark" for number in range(500)]
    tweets.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts) + "no tweet\n")
    conf = {
        tweet_word_count.EMIT_SECS: 1,
        word_count.INPUT: str(tweets),
        Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path / "checkpoint"),
    }
    captured = run_topology(tweet_word_count.build(conf), conf=conf, spark=spark_session, capture=())
    assert (captured.info.acked, captured.info.failed) == (501, 0)
    counted = tweet_word_count.streamed(spark_session, str(tmp_path / "checkpoint"))
    assert counted == Counter(" ".join(texts).split())
    assert counted == tweet_word_count.by_plain_spark(spark_session, str(tweets))


@pytest.mark.parametrize("seconds", [0, "many", True, 1.5])
def test_seconds_that_are_none_are_refused(seconds: object) -> None:
    with pytest.raises(tweet_word_count.ConfigError, match=r"tweets\.emit\.secs must be an int of at least 1"):
        tweet_word_count.build({tweet_word_count.EMIT_SECS: seconds})


def test_tweets_are_generated_where_none_are_given() -> None:
    lines = [line for (line,) in run_spout(tweet_word_count.GeneratedTweets()).values()]
    assert len(lines) == 1000
    assert tweet_word_count.words_of(lines[8]) == ["storm", "on", "spark", "1"]
