"""Where a text stands in logs."""

from __future__ import annotations

from sample_site import SampleSite

from storm_on_spark.web.pages.logs import search
from storm_on_spark.web.pages.question import Question
from storm_on_spark.web.rates import Rates


def test_a_line_of_a_log_ends_at_a_line_feed_and_nowhere_else() -> None:
    site = SampleSite()
    site.log = "first\nbefore\u2028the needle\x85after\nlast\n"

    hits, missed = search(Question(site, Rates(), {}, {}), site.logs("")[:1], "NEEDLE", "/logs")

    assert [(hit.before, hit.text, hit.after) for hit in hits] == [("before\u2028the ", "needle", "\x85after")]
    assert not missed


def test_what_was_found_is_marked_also_behind_letters_that_have_another_length_in_small() -> None:
    site = SampleSite()
    site.log = "İİ the Needle.\n"

    ((hit,), _) = search(Question(site, Rates(), {}, {}), site.logs("")[:1], "needle", "/logs")

    assert (hit.before, hit.text, hit.after) == ("İİ the ", "Needle", ".")
