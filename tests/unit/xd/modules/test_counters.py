"""Counters: what they count, and how it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from storm_on_spark.cli.main import main
from storm_on_spark.testing import BoltTester, make_tuple
from storm_on_spark.xd.modules import OptionError, find_module
from storm_on_spark.xd.modules.counters import Counter, Kind, delete_counter, list_counters, read_counter
from storm_on_spark.xd.modules.counters.values import CounterError, write_counter, writer_name
from tests.unit.xd.rest_server import Admin


def sink(folder: Path, kind: str, **options: str) -> Any:
    return BoltTester(find_module("sink", kind).make({"dir": str(folder), **options}, "s"))


def execute(tester: Any, *payloads: Any) -> None:
    tester.execute(*(make_tuple([payload, {}], ["payload", "headers"]) for payload in payloads))


def test_a_counter_goes_on_after_a_restart(tmp_path: Path) -> None:
    with sink(tmp_path, "counter") as tester:
        execute(tester, "a", "b")
        tester.restart()
        execute(tester, "c")
        assert len(tester.collector.acked) == 3
    assert read_counter(tmp_path, "counter", "s").values == {"value": 3}


def test_a_counter_is_there_before_its_first_message(tmp_path: Path) -> None:
    with sink(tmp_path, "counter", name="n") as tester:
        tester.tick()
    assert (list_counters(tmp_path, "counter"), read_counter(tmp_path, "counter", "n").values) == (["n"], {"value": 0})
    [file] = tmp_path.rglob("*.json")
    assert file.parent.stat().st_mode & 0o077 == 0, "other users can read it"


def test_values_are_counted_up_to_a_number_of_them(tmp_path: Path) -> None:
    with sink(tmp_path, "field-value-counter", expression="payload.to", maxValues="2") as tester:
        execute(tester, {"to": "a"}, {"to": ["b", "a"]}, {"to": "c"}, {"to": 1}, {"to": "b"})
    assert read_counter(tmp_path, "field-value-counter", "s").values == {"a": 2, "b": 2, "(others)": 2}


def test_an_aggregate_counter_counts_by_time(tmp_path: Path) -> None:
    with sink(tmp_path, "aggregate-counter", time="payload[0]", increment="payload[1]") as tester:
        execute(tester, [0, 1], [59, 2], [60, 4], [86_400, 8])
        for time, increment in ((-1, 1), (1e18, 1), ("a", 1), (0, True)):
            with pytest.raises(ValueError, match=r"expected a (time|number)"):
                execute(tester, [time, increment])
    values = read_counter(tmp_path, "aggregate-counter", "s").values
    assert values["minute"] == {"1970-01-01T00:00": 3, "1970-01-01T00:01": 4, "1970-01-02T00:00": 8}
    assert (values["day"], values["year"]) == ({"1970-01-01": 7, "1970-01-02": 8}, {"1970": 15})


def test_an_aggregate_counter_keeps_the_newest(tmp_path: Path) -> None:
    with sink(tmp_path, "aggregate-counter", time="payload") as tester:
        execute(tester, *(60 * minute for minute in range(1_500)))
    minutes = read_counter(tmp_path, "aggregate-counter", "s").values["minute"]
    assert (len(minutes), min(minutes)) == (1_440, "1970-01-01T01:00")


def test_counters_are_deleted(tmp_path: Path) -> None:
    with sink(tmp_path, "counter") as tester:
        execute(tester, "a")
    delete_counter(tmp_path, "counter", "s")
    for call in (delete_counter, read_counter):
        with pytest.raises(CounterError, match="there is no counter 's'"):
            call(tmp_path, "counter", "s")


def test_those_that_name_the_same_counter_add_up(tmp_path: Path) -> None:
    counters = {
        "counter": ({"value": 2}, {"value": 3}, {"value": 5}),
        "field-value-counter": ({"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 1, "b": 5, "c": 4}),
        "aggregate-counter": (
            {"day": {"1970-01-01": 1}, "year": {"1970": 1}},
            {"day": {"1970-01-01": 2, "1970-01-02": 4}, "year": {"1970": 6}},
            {"day": {"1970-01-01": 3, "1970-01-02": 4}, "year": {"1970": 7}},
        ),
    }
    for kind, (first, second, total) in counters.items():
        for writer, values in (("a", {"value": 9}), ("a", first), ("b", second)):
            write_counter(tmp_path, Counter(cast(Kind, kind), "n", values), writer)
        assert read_counter(tmp_path, cast(Kind, kind), "n").values == total
        assert list_counters(tmp_path, cast(Kind, kind)) == ["n"]


def test_each_task_of_each_stream_is_a_writer_of_its_own(tmp_path: Path) -> None:
    for topology in ("first", "second", "first"):
        options = {"dir": str(tmp_path), "name": "n"}
        made = find_module("sink", "counter").make(options, topology)
        with BoltTester(made, name=topology) as tester:
            execute(tester, "a", "b")
    # The second time it begins at 0, as there is no checkpoint.
    assert read_counter(tmp_path, "counter", "n").values == {"value": 4}


@pytest.mark.parametrize("content", ["", "[]", "{", '{"version": 1}', '{"version": 2, "kind": "counter"}'])
def test_a_file_that_is_no_counter(tmp_path: Path, content: str) -> None:
    (tmp_path / "counter" / "s").mkdir(parents=True)
    (tmp_path / "counter" / "s" / "w.json").write_text(content)
    with pytest.raises(CounterError, match=r"w\.json"):
        read_counter(tmp_path, "counter", "s")


@pytest.mark.parametrize("name", ["", "../a", ".a", "a/b", "a" * 201, "a\n"])
def test_what_is_no_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="Expected up to 200 letters"):
        read_counter(tmp_path, "counter", name)
    with pytest.raises(OptionError, match="Expected up to 200 letters"):
        find_module("sink", "counter").make({"name": name}, "s")


def test_counters_stand_in_the_folder_of_streams(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STORM_SPARK_XD_HOME", str(tmp_path))
    bolt: Any = find_module("sink", "counter").make({}, "s")
    assert bolt.folder == str(tmp_path / "counters")


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["counter", *arguments])


def test_the_command_shows_counters(tmp_path: Path) -> None:
    where = ("--dir", str(tmp_path))
    assert invoke("list", *where).output == ""
    with sink(tmp_path, "counter") as tester:
        execute(tester, "a", "b")
    with sink(tmp_path, "field-value-counter") as tester:
        execute(tester, "b", "a\n", "a\n")
    with sink(tmp_path, "aggregate-counter", time="0") as tester:
        execute(tester, "a")
    assert invoke("list", *where).output == "s\n"
    assert invoke("display", "s", *where).output == "2\n"
    assert invoke("display", "s", *where, "--kind", "field-value-counter").output == "a\\n  2\nb  1\n"
    aggregate = ("display", "s", *where, "--kind", "aggregate-counter")
    assert invoke(*aggregate).output == "1970-01-01T00  1\n"
    assert invoke(*aggregate, "--resolution", "day").output == "1970-01-01  1\n"
    assert json.loads(invoke("display", "s", *where, "--json").stdout)["values"] == {"value": 2}
    assert invoke("delete", "s", *where).output == "Deleted counter 's'\n"
    assert (invoke("display", "s", *where).exit_code, invoke("display", "../s", *where).exit_code) == (1, 2)
    assert invoke("display", "s", *where, "--resolution", "day").exit_code == 2


@pytest.mark.parametrize("parts", [("a/b", "c"), ("..", "c"), ("x" * 300,), ("a\n",), ("",)])
def test_the_name_of_a_writer_is_a_file(parts: tuple[str, ...], tmp_path: Path) -> None:
    name = writer_name(*parts)
    assert name == writer_name(*parts)
    assert (tmp_path / f"{name}.json").parent == tmp_path
    assert len(name) <= 200


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Admin:
    monkeypatch.setenv("STORM_SPARK_XD_HOME", str(tmp_path))
    counters = tmp_path / "counters"
    write_counter(counters, Counter("counter", "n", {"value": 2}), "a")
    write_counter(counters, Counter("counter", "n", {"value": 2_000}), "b")
    write_counter(counters, Counter("field-value-counter", "n", {"x": 1}), "a")
    write_counter(counters, Counter("aggregate-counter", "n", {"hour": {"h": 1}, "day": {"d": 2}}), "a")
    return Admin()


def test_an_admin_shows_counters(admin: Admin) -> None:
    assert admin.ask("GET", "/metrics/counters")[1]["content"] == [{"name": "n"}]
    assert admin.ask("GET", "/metrics/counters/n") == (200, {"name": "n", "value": 2_002})
    assert admin.ask("GET", "/metrics/field-value-counters/n")[1]["fieldValueCounts"] == {"x": 1}
    assert admin.ask("GET", "/metrics/aggregate-counters/n")[1]["counts"] == {"h": 1}
    assert admin.ask("GET", "/metrics/aggregate-counters/n?resolution=day")[1]["counts"] == {"d": 2}
    assert admin.ask("DELETE", "/metrics/counters/n") == (204, None)
    assert admin.ask("GET", "/metrics/counters")[1]["content"] == []


@pytest.mark.parametrize(
    ("method", "path", "status", "part"),
    [
        ("GET", "/metrics/counters/none", 404, "no counter named 'none'"),
        ("GET", "/metrics/counters/../none", 404, "There is no"),
        ("GET", "/metrics/counters/%2e%2e%2fcounter", 404, "There is no"),
        ("GET", "/metrics/counters/%00", 404, "no counter named"),
        ("GET", "/metrics/counters/" + "n" * 5_000, 404, "no counter named"),
        ("DELETE", "/metrics/counters/none", 404, "no counter named 'none'"),
        ("GET", "/metrics/counters?size=0", 400, "Expected a size"),
        ("GET", "/metrics/counters/n?resolution=hour", 400, "takes no parameters"),
        ("GET", "/metrics/aggregate-counters/n?resolution=week", 400, "Expected one of minute"),
        ("GET", "/metrics/gauges/n", 404, "There is no GET"),
        ("POST", "/metrics/counters/n", 405, "There is no POST"),
    ],
)
def test_what_is_no_counter_of_an_admin(admin: Admin, method: str, path: str, status: int, part: str) -> None:
    found, _, sentence = admin.told(method, path)
    assert (found, part in sentence) == (status, True), sentence
    assert admin.ask("GET", "/metrics/counters/n")[1]["value"] == 2_002
