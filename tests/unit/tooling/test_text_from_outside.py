"""Text from outside takes work in proportion to its length, and what is too deep is refused in a sentence."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from storm_on_spark.api.config.secrets import is_secret, scrubbed
from storm_on_spark.api.errors import CheckpointError, ConfigError, SetupError, StormError
from storm_on_spark.api.text.wording import did_you_mean
from storm_on_spark.cluster.client.answers import error_of, json_of
from storm_on_spark.cluster.errors import ClusterError, RecordError, SignatureError
from storm_on_spark.cluster.http.frames import FrameError
from storm_on_spark.cluster.plan_summary import PlanSummary
from storm_on_spark.cluster.records import LeaderInfo, decode
from storm_on_spark.cluster.security.jaas import parse_jaas
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.security.proofs import parameters
from storm_on_spark.cluster.supervisor.code import CodeStore
from storm_on_spark.cluster.thrift.checks import MOST_VALUES, check_call
from storm_on_spark.connectors.kafka.lookups import id_in
from storm_on_spark.connectors.kafka.writing.sink import _ERROR
from storm_on_spark.connectors.pipeline.stream import stream_types
from storm_on_spark.flux.errors import FluxError
from storm_on_spark.flux.nodes import Node, parse
from storm_on_spark.flux.properties import parse_properties
from storm_on_spark.flux.reading import Substitution, substituted
from storm_on_spark.launch.conf_text import parse_pair, read_file
from storm_on_spark.multilang.framing import JsonFraming, MsgpackFraming
from storm_on_spark.runtime.processes.lines.line import LineError
from storm_on_spark.runtime.processes.lines.listener import Hello
from storm_on_spark.runtime.storage.local import LocalStorage
from storm_on_spark.spark.checkpoint.directory import manifest_in
from storm_on_spark.spark.running.failures import reason_of
from storm_on_spark.xd.admin.completions import completions
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.modules.outside.jdbc import driver_arguments
from storm_on_spark.xd.tree import nodes

TIMES = 8
MOST = 3 * TIMES
"""What takes time by the square of the length takes 64 times as long."""
TRACE = "Traceback (most recent call last):"


def flux(text: str, **properties: str) -> Node:
    values = Substitution(properties)
    return parse(substituted(text, "a.yaml", values), values)


def places(text: str) -> None:
    found = substituted(text, "a.yaml", Substitution({"a": "1"}))
    for column in range(len(found.text)):
        found.place(0, column)


def in_pieces(framing: JsonFraming | MsgpackFraming, begin: bytes, size: int) -> None:
    framing.feed(begin)
    for _ in range(size):
        framing.feed(b"a" * 4096)


#: Work on a text of a length, and a length that takes about ten milliseconds.
WORK: dict[str, tuple[Callable[[int], Any], int]] = {
    "a property's continued line": (lambda n: parse_properties("a" + "\\\n b" * n), 20_000),
    "places on a line of a Flux file": (lambda n: places("${a}" * n), 1_000),
    "elements of a list in a Flux file": (lambda n: flux("a: '" + "${a[1]}" * n + "'", a=f"[{'x,' * n}]"), 1_000),
    "a key of a configuration": (lambda n: is_secret("token" + "_per_a" * n + "!"), 1_000),
    "a secret": (lambda n: scrubbed("eyJ-" * n), 10_000),
    "comments of a JAAS file": (lambda n: parse_jaas("/* " * n, "a"), 1_000),
    "words of Authorization": (lambda n: parameters("a" * n), 500),
    "values of Authorization": (lambda n: parameters("a=a" * n + '"'), 170),
    "blank requirements": (lambda n: CodeStore(Path("a"), None).installed(b"\n" * n), 1_500),  # type: ignore[arg-type]
    "the blanks of a channel": (lambda n: completions(f"a >{' ' * n}> ", LocalRegistry(Path("a"))), 1_500),
    "Java's name of an error": (lambda n: _ERROR.search("org.apache.kafka." + "a" * n), 20_000),
    "Java's names of errors": (lambda n: _ERROR.search("org.apache.kafka." * n), 50),
    "names that are alike": (lambda n: did_you_mean(ALPHABET * n, [f"{ALPHABET * n}x"]), 15),
    "traces within traces": (lambda n: reason_of(f" a{TRACE}\n" * n), 500),
    "the end of a trace that never comes": (lambda n: reason_of(f"{TRACE}\n" + " a\n" * n), 10_000),
    "a message of a child in JSON": (lambda n: in_pieces(JsonFraming(), b'"', n), 400),
    "a message of a child in MessagePack": (lambda n: in_pieces(MsgpackFraming(), b"\xc6\x03\0\0\0", n), 200),
}
ALPHABET = "".join(chr(0x4E00 + number) for number in range(150))


def seconds(work: Callable[[int], Any], length: int) -> float:
    found = []
    for _ in range(3):
        start = time.thread_time()
        with contextlib.suppress(StormError):
            work(length)
        found.append(time.thread_time() - start)
    return min(found)


@pytest.mark.parametrize("what", WORK)
def test_work_grows_as_the_text_does(what: str) -> None:
    work, length = WORK[what]
    # What takes no time at all may take many times as long.
    assert seconds(work, TIMES * length) < MOST * max(seconds(work, length), 0.001)


def test_traces_of_python_are_found_as_before() -> None:
    assert reason_of(f"java.E: x\n  {TRACE}\n    File\n\n  KeyError: 1\n{TRACE}\n  File\nno end") == "no end"
    assert reason_of(f"  {TRACE}\n    File\n  KeyError: 1\n\tat java.A") == "KeyError: 1"
    assert reason_of(f"org.PythonException: {TRACE}\n  File\n\nValueError: a\n\tat java.A") == "ValueError: a"
    # The outer one has no end: a line is less indented.
    assert reason_of(f"    {TRACE}\n      {TRACE}\n        File\n      KeyError: 2\n  at") == "KeyError: 2"


DEEP = b"[" * 100_000
OBJECT = b'{"a":' + DEEP
RESPONSE = httpx.Response(500, content=OBJECT, request=httpx.Request("GET", "http://a"))


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda: flux("config: " + "[" * 100_000), FluxError),
        (lambda: parse_pair("a=" + "[" * 100_000), ConfigError),
        (lambda: decode(LeaderInfo, OBJECT, "/a"), RecordError),
        (lambda: decode(nodes.Definition, OBJECT, "/a"), RecordError),
        (lambda: Keyring().decode(LeaderInfo, b'{"signed":1,"record":' + DEEP, "/a"), SignatureError),
        (lambda: PlanSummary.of(OBJECT, "/a"), RecordError),
        (lambda: json_of(RESPONSE), ClusterError),
        (lambda: Hello.parse(DEEP), LineError),
    ],
)
def test_what_is_nested_too_deeply_is_refused(read: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        read()


def test_what_is_nested_too_deeply_counts_as_nothing() -> None:
    assert id_in(DEEP.decode()) is None
    assert "HTTP 500" in str(error_of(RESPONSE, "a"))


def test_files_that_are_nested_too_deeply_are_named(tmp_path: Path) -> None:
    file = tmp_path / "manifest.json"
    file.touch(0o600)
    file.write_bytes(DEEP)
    with pytest.raises(SetupError, match=r"manifest\.json: expected JSON"):
        driver_arguments(str(file))
    with pytest.raises(ConfigError, match=r"manifest\.json:1:52: it is nested more than 50 levels deep"):
        read_file(file)
    for name in ("storm/manifest.json", "_storm_stream.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(DEEP)
    with pytest.raises(CheckpointError, match=r"manifest\.json can't be read: RecursionError"):
        manifest_in(LocalStorage(tmp_path))
    with pytest.raises(SetupError, match=r"_storm_stream\.json can't be read: RecursionError"):
        stream_types(tmp_path)


def test_a_number_that_no_one_means_is_refused() -> None:
    # In base 60 its value takes time by the square of its length.
    text = "1:" * 60 + "1"
    with pytest.raises(FluxError, match=r"a\.yaml:1:4: a number of 121 characters; at most 100 are read"):
        flux(f"a: {text}")
    with pytest.raises(ConfigError, match="a number of 121 characters"):
        parse_pair(f"a=[{text}]")


def test_a_comment_without_its_end_hides_nothing() -> None:
    with pytest.raises(SetupError, match="line 2, column 1: a comment without its end"):
        parse_jaas("\n/* A { };", "a")


MEGABYTE = 1 << 20
VALUES = {
    "a list of bools": struct.pack("!bhbi", 15, 99, 2, MEGABYTE) + b"\1" * MEGABYTE,
    "a list of empty structs": struct.pack("!bhbi", 15, 99, 12, MEGABYTE) + b"\0" * MEGABYTE,
    "a map": struct.pack("!bhbbi", 13, 99, 2, 2, MEGABYTE // 2) + b"\1" * MEGABYTE,
    "fields": b"\2\0\x63\1" * (MEGABYTE // 4),
}


@pytest.mark.parametrize("body", VALUES.values(), ids=VALUES)
def test_a_call_of_many_values_is_refused(body: bytes) -> None:
    call = struct.pack("!Ii", 0x80010001, 1) + b"a" + struct.pack("!i", 7)
    with pytest.raises(FrameError, match=f"a call has more than {MOST_VALUES:,} values"):
        check_call(call + body + b"\0")
    check_call(call + struct.pack("!bhi", 11, 99, MEGABYTE) + b"a" * MEGABYTE + b"\0")
