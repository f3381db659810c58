"""Calls of Thrift as bytes: whatever comes is answered, or ends the connection."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thriftpy2.protocol.binary import TBinaryProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TMemoryBuffer

from storm_on_spark.cluster.credentials import checked_credentials
from storm_on_spark.cluster.http.frames import FrameError, FrameReader, framed
from storm_on_spark.cluster.nimbus.control import Control
from storm_on_spark.cluster.thrift.checks import check_call
from storm_on_spark.cluster.thrift.interface import interface
from storm_on_spark.cluster.thrift.refused import INSTEAD
from storm_on_spark.cluster.thrift.service import Handler, answer


def call(name: bytes, arguments: bytes) -> bytes:
    return struct.pack("!Ii", 0x80010001, len(name)) + name + struct.pack("!i", 7) + arguments


class NoCluster:
    """Of every method but one, this cluster fails: what is tested are messages."""

    def __init__(self) -> None:
        self.conf = {"nimbus.seeds": ["localhost"]}


HANDLER = Handler(cast("Control", NoCluster()))
NAMES = sorted(interface().Nimbus.thrift_services)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_answered(data: bytes) -> None:
    try:
        answer(HANDLER, data)
    except FrameError:
        return


@given(st.sampled_from(NAMES), st.binary(max_size=60))
def test_any_arguments_are_refused_or_answered(name: str, arguments: bytes) -> None:
    try:
        found = answer(HANDLER, call(name.encode(), arguments))
    except FrameError:
        return
    assert found[8 : 8 + len(name)] == name.encode()


@given(st.lists(st.binary(min_size=1, max_size=20)), st.integers(1, 7))
def test_frames_are_the_same_however_they_are_cut(messages: list[bytes], size: int) -> None:
    reader, data, found = FrameReader(20), b"".join(map(framed, messages)), []
    for at in range(0, len(data), size):
        reader.feed(data[at : at + size])
        while (frame := reader.next()) is not None:
            found.append(frame)
    assert found == messages
    assert not reader.begun


@pytest.mark.parametrize(
    "arguments",
    [
        b"\x0f\x00\x01\x00\x7f\xff\xff\xff\x00",
        b"\x0d\x00\x01\x01\x01\x7f\xff\xff\xff\x00",
        b"\x0b\x00\x01\xff\xff\xff\xff\x00",
        b"\x0c\x00\x01" * 17 + b"\x00" * 18,
        b"\x00\x00",
        b"",
    ],
    ids=["list of nothing", "map of nothing", "negative length", "deep", "more behind it", "cut off"],
)
def test_lengths_are_not_believed(arguments: bytes) -> None:
    with pytest.raises(FrameError):
        check_call(call(b"getLeader", arguments))


def test_other_methods_are_refused_with_a_sentence() -> None:
    found: Any = answer(HANDLER, call(b"getNimbusTime", b"\x00"))
    assert b"getNimbusTime is not answered by Thrift here; use storm-spark" in found
    assert found[:4] == b"\x80\x01\x00\x03"


@pytest.mark.parametrize(
    ("name", "number"), [("getTopologyPageInfo", 2), ("getTopologyHistory", 1), ("getComponentPageInfo", 2)]
)
def test_what_storm_declares_an_exception_for_is_refused_with_it(name: str, number: int) -> None:
    # A text and a number, of which the interface here knows nothing.
    arguments = b"\x0b\x00\x01" + b"\x00\x00\x00\x05words" + b"\x08\x00\x02\x00\x00\x00\x07" + b"\x00"
    found: Any = answer(HANDLER, call(name.encode(), arguments))
    assert found[:4] == b"\x80\x01\x00\x02"
    # A reply that has one field, the exception, under Storm's number.
    body = found[8 + len(name) + 4 :]
    assert body[:3] == b"\x0c" + number.to_bytes(2, "big")
    assert f"{name} is not answered here: {INSTEAD[name]}".encode() in body


def test_the_table_of_methods_is_that_of_the_interface() -> None:
    page = (Path(__file__).parents[4] / "docs" / "migration.md").read_text("utf-8")
    table = page.partition("## Thrift clients")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == NAMES


class OneTopology(NoCluster):
    """Has the topology `words`, and notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Any, ...]] = []

    def snapshot(self) -> Any:
        base = SimpleNamespace(name="words", topology_id="words-1-1")
        return SimpleNamespace(storms={base.topology_id: base})

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **named: self.asked.append((name, *arguments, *named.values()))


def test_a_call_that_changes_a_topology_is_passed_on_and_answered() -> None:
    control, types = OneTopology(), interface()
    options = types.RebalanceOptions(
        wait_secs=5, num_workers=3, num_executors={"a": 2}, topology_conf_overrides='{"topology.debug": true}'
    )
    calls = {
        "activate": ("words",),
        "deactivate": ("words",),
        "killTopology": ("words",),
        "killTopologyWithOpts": ("words", types.KillOptions(wait_secs=7)),
        "rebalance": ("words", options),
        "debug": ("words", "count", True, 0.0),
        "uploadNewCredentials": ("words", types.Credentials(creds={"token": "s3cret"}, topoOwner="ann")),
    }
    for name, arguments in calls.items():
        out = TMemoryBuffer()
        client = TClient(types.Nimbus, None, TBinaryProtocol(out))
        names = {
            "debug": ("name", "component", "enable", "samplingPercentage"),
            "uploadNewCredentials": ("name", "creds"),
        }.get(name, ("name", "options"))
        client._send(name, **dict(zip(names, arguments, strict=False)))  # noqa: SLF001
        back = answer(Handler(cast("Control", control)), out.getvalue())
        TClient(types.Nimbus, TBinaryProtocol(TMemoryBuffer(back)), None)._recv(name)  # noqa: SLF001
    conf = {"topology.debug": True, "topology.workers": 3}
    who = "a Thrift client"
    assert control.asked == [
        ("activate", "words-1-1", who),
        ("deactivate", "words-1-1", who),
        ("kill", "words-1-1", None, who),
        ("kill", "words-1-1", 7, who),
        ("rebalance", "words-1-1", 5, conf, {"a": 2}, who),
        ("sample", "words-1-1", "count", 10.0, who),
        ("set_credentials", "words-1-1", {"token": "s3cret"}, who),
    ]


def test_credentials_that_are_none_are_refused_without_their_values() -> None:
    class Strict(OneTopology):
        def set_credentials(self, topology_id: str, given: object, by: str) -> None:
            checked_credentials(given)

    types, out = interface(), TMemoryBuffer()
    client = TClient(types.Nimbus, None, TBinaryProtocol(out))
    large = types.Credentials(creds={"token": "s3cret" * 20_000})
    client._send("uploadNewCredentials", name="words", creds=large)  # noqa: SLF001
    back = answer(Handler(cast("Control", Strict())), out.getvalue())
    with pytest.raises(types.InvalidTopologyException) as caught:
        TClient(types.Nimbus, TBinaryProtocol(TMemoryBuffer(back)), None)._recv("uploadNewCredentials")  # noqa: SLF001
    assert caught.value.msg == "credentials have 120,005 bytes; a topology can have 64,000 of them"
    assert b"s3cret" not in back
