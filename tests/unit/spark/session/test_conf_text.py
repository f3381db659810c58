"""`-c` and `--conf`: typed as in YAML, bounded, with errors that say where."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.launch.conf_text import merged, parse_pair, parse_value, read_file


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30", 30),
        ("-1", -1),
        ("0.5", 0.5),
        ("true", True),
        ("no", False),
        ("null", None),
        ("", ""),
        ("plain", "plain"),
        ("'30'", "30"),
        ('"a\\tb"', "a\tb"),
        ("[1, two]", [1, "two"]),
        ("{a: 1}", {"a": 1}),
        ("a: b", "a: b"),
        ("/tmp/my notes #1.txt", "/tmp/my notes #1.txt"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("*.txt", "*.txt"),
        ("%d", "%d"),
        ("a=b", "a=b"),
        ("'it''s'", "it's"),
    ],
)
def test_values_are_typed_as_in_yaml_and_paths_need_no_quotes(text: str, value: object) -> None:
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


@given(st.text())
def test_any_text_survives_single_quotes(text: str) -> None:
    """What the Makefile does with INPUT."""
    printable = "".join(character for character in text if character.isprintable())
    assert parse_value("'" + printable.replace("'", "''") + "'") == printable


@pytest.mark.parametrize("text", ["no-equals", "=value", " = 3"])
def test_a_pair_needs_a_key_and_an_equals_sign(text: str) -> None:
    with pytest.raises(ConfigError, match="-c takes KEY=VALUE"):
        parse_pair(text)


def test_a_list_that_does_not_end_names_its_key() -> None:
    with pytest.raises(ConfigError, match=r"^-c my\.key: .* in '\[1, 2'$"):
        parse_pair("my.key=[1, 2")


def test_pairs_go_before_files_and_later_files_before_earlier_ones(tmp_path: Path) -> None:
    first, second = tmp_path / "1.yaml", tmp_path / "2.yaml"
    first.write_text("a: 1\nb: 1\nc: 1\n")
    second.write_text("b: 2\nc: 2\n")
    assert merged([first, second], ["c=3", "c=4"]) == {"a": 1, "b": 2, "c": 4}


def test_aliases_and_merged_keys_mean_what_they_name(tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text(
        "own.port: &port 6700\nown.parts: &parts\n  topology.workers: 2\n  topology.debug: true\n"
        "supervisor.slots.ports: [*port, 6701]\n<<: *parts\ntopology.workers: 3\n"
    )
    conf = read_file(file)
    assert conf["supervisor.slots.ports"] == [6700, 6701]
    assert (conf["topology.workers"], conf["topology.debug"]) == (3, True)
    file.write_text("own: &parts {topology.debug: true}\n<<: *parts\nown.2: 1\ntopology.workers: many\n")
    with pytest.raises(ConfigError, match=r"conf\.yaml:4: topology\.workers"):
        read_file(file)


def test_an_empty_file_is_an_empty_configuration(tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text("# nothing yet\n")
    assert read_file(file) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- 1\n- 2\n", "must hold keys with values"),
        ("a: 1\nb: [1, 2\n", r"conf\.yaml:3:1: "),
        ("a: &x [1]\nb: [" + "*x, " * 51 + "]\n", r"conf\.yaml:2:205: more than 50 aliases"),
        ("a: &x [*x]\n", r"conf\.yaml:1:4: it has more than 100,000 values or 50 levels"),
        ("a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 6)), "100,000 values"),
        ("".join(f"a{n}: &a{n} {'[' * 9}{f'*a{n - 1}' if n else ''}{']' * 9}\n" for n in range(9)), "50 levels"),
        ("a: 1\nb: 2\na: 3\n", r"conf\.yaml:3:1: 'a' is there twice"),
        ("topology:\n  workers: 2\n", "keys are written in full: topology.workers: 2"),
        ("a: !!python/object/apply:os.system [echo]\n", r"conf\.yaml:1:4: could not determine a constructor"),
        ("a: " + "[" * 100_000, r"conf\.yaml:1:54: it is nested more than 50 levels deep"),
        ("a: '" + "x" * (1 << 20) + "'", "larger than 1048576 bytes"),
        ("a: \x00", "conf.yaml"),
    ],
)
def test_a_bad_file_is_refused_with_the_position(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError, match=message):
        read_file(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.yaml can't be read: No such file"):
        read_file(tmp_path / "gone.yaml")


def test_a_single_key_config_may_hold_a_file(tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text("config:\n  topology.workers: 2\n  my.key: a\n")
    assert merged([file], []) == {"topology.workers": 2, "my.key": "a"}
    file.write_text("config:\n")
    assert merged([file], []) == {}


def test_a_problem_below_config_is_named_with_its_own_line(tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text("config:\n  my.key: a\n  topology.workers: x\n")
    with pytest.raises(ConfigError, match=r"conf\.yaml:3: topology\.workers"):
        merged([file], [])
