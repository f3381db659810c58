"""`EnrichBolt` on real tables, without Spark: what is added, when it is read again, and what is refused."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from storm_on_spark import ConfigError
from storm_on_spark.connectors.delta import EnrichBolt, enrich
from storm_on_spark.testing import BoltTester, make_tick_tuple, make_tuple

USERS = pa.table({"id": [1, 2, None], "country": ["FR", None, "nowhere"], "age": [30, 40, 0]})


class Seconds:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def users(tmp_path):
    place = str(tmp_path / "users")
    write_deltalake(place, USERS)
    return place


def enriching(table, **options):
    options = {"on": {"user": "id"}, "add": ["country"], "fields": ["user", "page"], **options}
    return BoltTester(EnrichBolt(table, **options))


def clicks(*users):
    return [make_tuple([user, "/"], ["user", "page"]) for user in users]


def test_columns_are_added_and_none_where_the_table_has_no_row(users):
    for table in (users, USERS):
        tester = enriching(table)
        tester.execute(*clicks(1, 2, 3, None), make_tick_tuple())
        assert tester.collector.values() == [(1, "/", "FR"), (2, "/", None), (3, "/", None), (None, "/", None)]
        assert len(tester.collector.acked) == 5


def test_tuples_without_a_row_are_dropped_and_acked_on_demand():
    tester = enriching(USERS, inner=True, add=["age", "country"], fields=[])
    tester.execute(*clicks(1, 3, 2, None))
    assert tester.collector.values() == [(30, "FR"), (40, None)]
    assert len(tester.collector.acked) == 4


def test_several_fields_are_a_key():
    tester = enriching(USERS, on={"user": "id", "years": "age"}, fields=["user"])
    tester.execute(*[make_tuple(values, ["user", "years"]) for values in ((1, 30), (1, 40), (2, 40))])
    assert tester.collector.values() == [(1, "FR"), (1, None), (2, None)]


def test_a_new_version_is_looked_for_once_the_time_is_over(users):
    clock = Seconds()
    tester = enriching(users, refresh_secs=10, clock=clock)
    DeltaTable(users).update(new_values={"country": "DE"})
    for secs, country in ((9.0, "FR"), (1.0, "DE")):
        clock.now += secs
        tester.execute(*clicks(1))
        assert tester.collector.values()[-1] == (1, "/", country)


def test_tasks_of_a_process_read_a_version_once(users):
    countries = []
    for _ in range(2):
        tester = enriching(users)
        tester.execute(*clicks(1))
        countries.append(tester.collector.values()[0][2])
    assert countries[0] is countries[1]


def test_a_table_that_is_gone_is_reported_and_its_rows_serve_on(users):
    clock = Seconds()
    tester = enriching(users, refresh_secs=10, clock=clock)
    shutil.rmtree(users)
    clock.now += 11.0
    tester.execute(*clicks(1, 1))
    assert tester.collector.values() == [(1, "/", "FR")] * 2
    assert ["can't be read" in str(error) for error in tester.collector.errors] == [True]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (USERS, {"add": ["name"]}, "the table of Arrow has no column 'name'"),
        (pa.concat_tables([USERS, USERS]), {}, "has the key 1 more than once"),
        ("/nowhere/at/all", {}, "the Delta table /nowhere/at/all can't be read"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_at_the_start(table, options, message):
    with pytest.raises(Exception, match=message):
        enriching(table, **options)


def test_a_table_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(enrich, "_MOST_ROWS", 2)
    with pytest.raises(Exception, match="has 3 rows; 2 can be kept"):
        enriching(USERS)


@pytest.mark.parametrize(
    "given",
    [
        {"on": {}},
        {"on": "user"},
        {"add": []},
        {"add": "country"},
        {"add": ["page"]},
        {"add": ["age", "age"]},
        {"refresh_secs": 0},
        {"refresh_secs": "1"},
        {"table": ["users"]},
    ],
)
def test_arguments_that_make_no_sense_are_refused(given):
    with pytest.raises(ConfigError):
        EnrichBolt(**{"table": USERS, "on": {"user": "id"}, "add": ["country"], "fields": ["user", "page"], **given})
