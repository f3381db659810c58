"""A record counts only with a signature of the cluster's secret over kind, path, stamp and content."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cluster_records as made
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.cluster.errors import RecordError, SignatureError
from storm_on_spark.cluster.paths import ASSIGNMENTS, STORMS
from storm_on_spark.cluster.records import (
    ArtifactInfo,
    Assignment,
    ErrorRecord,
    LeaderInfo,
    NameClaim,
    NimbusSummary,
    Ownership,
    Record,
    WorkerBeat,
)
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.security.tokens import Tokens
from storm_on_spark.cluster.state.contents import Contents, Node

TOKEN, OTHER = "0123456789abcdef-right", "0123456789abcdef-wrong"
PATH = "/storm/assignments/t-1-1"
ASSIGNMENT = made.assignment("t-1-1", supervisor_id="s", epoch=5, assigned_at=1.5)
BASE = made.storm("t-1-1", conf={"a": 1.0})


RECORDS: list[Record] = [
    ASSIGNMENT,
    BASE,
    NimbusSummary(host="localhost", port=1, started_at=2.0, version="0.1.0"),
    made.supervisor(),
    LeaderInfo(address="localhost:1", epoch=7, since=0.5),
    made.submission(),
    made.manifest(artifacts=(ArtifactInfo(name="code.zip", size=1, sha256="0" * 64),)),
    made.ownership(),
    made.beat(),
    ErrorRecord(component="c", task=1, message="m", time=0.0, host="h", port=1),
    NameClaim(topology_id="t-1-1"),
]


def keyring(*tokens: str) -> Keyring:
    return Keyring(Tokens(tokens) if tokens else None)


SIGNED = keyring(TOKEN).encode(ASSIGNMENT, PATH, (5, 1))


def edited(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    document = json.loads(data)
    change(document)
    return json.dumps(document, separators=(",", ":")).encode()


CASES: dict[str, tuple[bytes, str]] = {
    "unsigned": (Keyring().encode(ASSIGNMENT, PATH), "is not signed with the cluster's secret"),
    "signed with another secret": (keyring(OTHER).encode(ASSIGNMENT, PATH), "signed with a secret that is not in"),
    "signed with another secret, under our key's name": (
        edited(keyring(OTHER).encode(ASSIGNMENT, PATH, (5, 1)), lambda d: d.update(key=json.loads(SIGNED)["key"])),
        "signature of this Assignment is wrong",
    ),
    "of another path": (
        keyring(TOKEN).encode(ASSIGNMENT, "/storm/assignments/t-2-1", (5, 1)),
        "signature of this Assignment is wrong",
    ),
    "of another cluster below another root": (
        keyring(TOKEN).encode(ASSIGNMENT, "/other/assignments/t-1-1", (5, 1)),
        "signature of this Assignment is wrong",
    ),
    "of another kind": (
        keyring(TOKEN).encode(BASE, PATH, (5, 1)),
        "signature of this Assignment is wrong",
    ),
    "changed": (
        edited(SIGNED, lambda d: d["record"].update(supervisor_id="evil")),
        "signature of this Assignment is wrong",
    ),
    "with a field more": (
        edited(SIGNED, lambda d: d["record"].update(more=1)),
        "signature of this Assignment is wrong",
    ),
    "with a newer stamp": (edited(SIGNED, lambda d: d.update(stamp=[9, 9])), "signature of this Assignment is wrong"),
    "without a signature": (edited(SIGNED, lambda d: d.update(mac="")), "signature of this Assignment is wrong"),
    "with a signature that is none": (edited(SIGNED, lambda d: d.pop("mac")), "no signed Assignment"),
    "of a later kind of signature": (edited(SIGNED, lambda d: d.update(signed=2)), "no signed Assignment"),
    "cut": (SIGNED[:-20], "no signed Assignment"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_signed_as_it_has_to_be_is_refused(case: str) -> None:
    data, message = CASES[case]
    with pytest.raises(SignatureError, match=message) as refused:
        keyring(TOKEN).decode(Assignment, data, PATH)
    assert PATH in str(refused.value)
    assert TOKEN not in str(refused.value)
    assert OTHER not in str(refused.value)


def test_what_is_signed_counts() -> None:
    opened = keyring(TOKEN).open(Assignment, SIGNED, PATH)
    assert (opened.record, opened.stamp, opened.current) == (ASSIGNMENT, (5, 1), True)
    assert TOKEN.encode() not in SIGNED


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_every_kind_of_record(record: Record) -> None:
    ours, path = keyring(TOKEN), "/storm/x/y"
    data = ours.encode(record, path, (3, 4))
    assert ours.decode(type(record), data, path) == record
    # Those by which somebody runs code, deletes something or connects somewhere; the rest only tells.
    tells = {"Ownership", "WorkerBeat", "ErrorRecord", "NameClaim"}
    assert type(record).signed == (type(record).__name__ not in tells)
    if type(record).signed:
        for path_read in ("/storm/x/z", "/storm/x/y/", "/storm/y/x"):
            with pytest.raises(SignatureError):
                ours.decode(type(record), data, path_read)
        for bit in range(0, len(data) * 8, 7):
            damaged = bytearray(data)
            damaged[bit // 8] ^= 1 << bit % 8
            with pytest.raises(RecordError):
                ours.decode(type(record), bytes(damaged), path)


@given(st.text(alphabet="/abc-1", min_size=1, max_size=12), st.text(alphabet="/abc-1", min_size=1, max_size=12))
def test_no_path_stands_for_another(left: str, right: str) -> None:
    ours = keyring(TOKEN)
    data = ours.encode(ASSIGNMENT, left)
    if left == right:
        assert ours.decode(Assignment, data, right) == ASSIGNMENT
    else:
        with pytest.raises(SignatureError):
            ours.decode(Assignment, data, right)


def test_without_a_secret_nothing_is_signed_and_everything_is_read() -> None:
    nobody = keyring()
    assert not nobody.signs
    assert nobody.encode(ASSIGNMENT, PATH).startswith(b'{"format":1,')
    assert nobody.decode(Assignment, nobody.encode(ASSIGNMENT, PATH), PATH) == ASSIGNMENT
    # A daemon that has no secret yet, among others that have.
    assert nobody.decode(Assignment, SIGNED, PATH) == ASSIGNMENT


def test_the_way_from_one_secret_to_another() -> None:
    steps = [keyring(OTHER), keyring(OTHER, TOKEN), keyring(TOKEN, OTHER), keyring(TOKEN)]
    for before, after in itertools.pairwise(steps):
        for writer, reader in ((before, after), (after, before), (after, after)):
            if (writer, reader) != (steps[2], steps[3]):
                assert reader.decode(Assignment, writer.encode(ASSIGNMENT, PATH), PATH) == ASSIGNMENT
    assert [step.mixed for step in steps] == [False, True, True, False]
    old = steps[1].encode(ASSIGNMENT, PATH)
    assert steps[1].open(Assignment, old, PATH).current
    assert not steps[2].open(Assignment, old, PATH).current, "has to be signed again"
    with pytest.raises(SignatureError, match="a secret that is not in"):
        steps[3].decode(Assignment, old, PATH)


def test_what_drivers_tell_needs_no_signature() -> None:
    owner = made.ownership()
    ours = keyring(TOKEN)
    assert ours.decode(Ownership, Keyring().encode(owner, PATH), PATH) == owner
    assert not WorkerBeat.signed


# --- what a view makes of it --------------------------------------------------------------------------------


def node(data: bytes, version: int = 0) -> Node:
    return Node(data, version, 1)


def test_an_older_record_that_comes_back_is_refused_and_the_newer_counts_again() -> None:
    ours = keyring(TOKEN)
    contents = Contents("/storm", ours)
    old = ours.encode(ASSIGNMENT, PATH, (5, 1))
    moved = made.assignment("t-1-1", supervisor_id="other", launch=2, epoch=5)
    new = ours.encode(moved, PATH, (5, 7))
    parts = (ASSIGNMENTS, "t-1-1")
    contents.set_node(parts, node(old))
    contents.set_node(parts, node(new, 1))
    assert contents.snapshot()[0].assignments["t-1-1"].launch == 2
    contents.set_node(parts, node(old, 2))
    snapshot, _ = contents.snapshot()
    assert "t-1-1" not in snapshot.assignments
    assert "older than one that was there before" in snapshot.unread(ASSIGNMENTS)["t-1-1"].reason
    contents.set_node(parts, node(new, 3))
    assert contents.snapshot()[0].assignments["t-1-1"].launch == 2
    # Also after it was removed: a topology that was killed does not come back.
    contents.set_node(parts, None)
    contents.set_node(parts, node(old))
    assert "t-1-1" in contents.snapshot()[0].unread(ASSIGNMENTS)
    # A leader after that one, whatever its own count.
    contents.set_node(parts, node(ours.encode(moved, PATH, (6, 1))))
    assert contents.snapshot()[0].assignments["t-1-1"].launch == 2


@pytest.mark.parametrize("case", CASES)
def test_a_refused_record_is_there_and_says_nothing(case: str) -> None:
    contents = Contents("/storm", keyring(TOKEN))
    base = keyring(TOKEN).encode(BASE, "/storm/storms/t-1-1", (5, 1))
    contents.set_node((STORMS, "t-1-1"), node(base))
    contents.set_node((ASSIGNMENTS, "t-1-1"), node(CASES[case][0]))
    snapshot, changed = contents.snapshot()
    assert "t-1-1" in snapshot.storms
    assert snapshot.assignments == {}
    assert snapshot.unread(ASSIGNMENTS).keys() == {"t-1-1"}
    assert not snapshot.unread(ASSIGNMENTS)["t-1-1"].foreign
    assert changed == {STORMS, ASSIGNMENTS}
    assert contents.damaged() == {(ASSIGNMENTS, "t-1-1")}


def test_an_address_that_nobody_signed_is_no_nimbus() -> None:
    contents = Contents("/storm", keyring(TOKEN))
    evil = NimbusSummary(host="evil", port=1, started_at=0.0, version="1")
    contents.set_node(("nimbuses", "evil:1"), node(Keyring().encode(evil, "/storm/nimbuses/evil:1")))
    good = NimbusSummary(host="good", port=1, started_at=0.0, version="1")
    signed = keyring(TOKEN).encode(good, "/storm/nimbuses/good:1")
    contents.set_node(("nimbuses", "good:1"), node(signed))
    contents.set_node(("nimbuses", "evil:2"), node(signed))
    assert contents.snapshot()[0].nimbuses.keys() == {"good:1"}


# --- the file ------------------------------------------------------------------------------------------------


def test_a_file_that_changes_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file, clock = tmp_path / "token", [0.0]

    def write(text: str, mode: int = 0o600) -> None:
        other = tmp_path / "other"
        other.write_text(text)
        other.chmod(mode)
        other.replace(file)

    write(f"{OTHER}\n")
    tokens = Tokens.from_file(file, lambda: clock[0])
    ring = Keyring(tokens)
    write(f"# two\n{TOKEN}\n{OTHER}\n")
    assert tokens.all == (OTHER,), "it is not looked at with every record"
    clock[0] += 2
    assert tokens.all == (TOKEN, OTHER)
    assert ring.decode(Assignment, SIGNED, PATH) == ASSIGNMENT
    for text, mode in (("short", 0o600), ("", 0o600), (f"{OTHER}\n", 0o644)):
        write(text, mode)
        clock[0] += 2
        assert tokens.all == (TOKEN, OTHER), "what can't be used changes nothing"
    file.unlink()
    clock[0] += 2
    assert tokens.first == TOKEN
    assert caplog.text.count("The tokens stay those that were read before") == 4
    assert TOKEN not in caplog.text + repr(tokens)
