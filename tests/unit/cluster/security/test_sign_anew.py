"""A leader signs what counts with the first token, word for word, and touches nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from cluster_records import assignment, storm
from memory_state import ROOT, MemoryState

from storm_on_spark.cluster.credentials import opened, sealed
from storm_on_spark.cluster.errors import FencedError
from storm_on_spark.cluster.nimbus.new_signatures import sign_anew
from storm_on_spark.cluster.paths import ASSIGNMENTS, CREDENTIALS, STORMS, Paths
from storm_on_spark.cluster.records import Record, StoredCredentials
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.security.tokens import Tokens

OLD, NEW, STRANGE = (Tokens((name * 16,)) for name in ("o", "n", "s"))
BOTH = Tokens((NEW.first, OLD.first))
BASE = storm(conf={"a": 1})
ASSIGNMENT = assignment(assigned_at=0.5)


class SignedState(MemoryState):
    """Nodes in memory, written with a keyring."""

    def __init__(self, keyring: Keyring) -> None:
        super().__init__()
        self.keyring = keyring
        self.session: Any = SimpleNamespace(keyring=keyring, paths=Paths(ROOT))

    def commit(self, fence: Any, *changes: Any) -> tuple[int, ...]:
        versions = super().commit(fence, *changes)
        for change in changes:
            path = Paths(ROOT).of(*change.place)
            self.nodes[change.place].data = self.keyring.encode(change.value, path, (fence.epoch, 1))
        return versions

    def stand(self, keyring: Keyring, record: Record, *parts: str) -> bytes:
        """Has a node stand there as somebody wrote it."""
        data = keyring.encode(record, Paths(ROOT).of(*parts), (1, 1))
        self.put(data, *parts)
        return data


@pytest.mark.parametrize(
    ("writer", "reader", "signed"),
    [
        (Keyring(OLD), Keyring(BOTH), 2),
        (Keyring(BOTH), Keyring(BOTH), 0),
        (Keyring(STRANGE), Keyring(BOTH), 0),
        (Keyring(), Keyring(BOTH), 0),
        (Keyring(), Keyring(NEW), 0),
        (Keyring(), Keyring(), 0),
    ],
)
def test_what_counts_is_signed_and_the_rest_stays(writer: Keyring, reader: Keyring, signed: int) -> None:
    state = SignedState(reader)
    fence = state.lead()
    before = {
        (STORMS, "t"): state.stand(writer, BASE, STORMS, "t"),
        (ASSIGNMENTS, "t"): state.stand(writer, ASSIGNMENT, ASSIGNMENTS, "t"),
    }
    assert sign_anew(state, fence)[0] == signed
    for parts, record in (((STORMS, "t"), BASE), ((ASSIGNMENTS, "t"), ASSIGNMENT)):
        node = state.nodes[parts]
        if signed:
            opened = Keyring(NEW).open(type(record), node.data, Paths(ROOT).of(*parts))
            assert (opened.record, opened.current) == (record, True)
        else:
            assert (node.data, node.version) == (before[parts], 0)
    assert sign_anew(state, fence)[0] == 0, "once"


def test_a_copy_from_elsewhere_is_not_made_good() -> None:
    state = SignedState(Keyring(BOTH))
    fence = state.lead()
    data = Keyring(OLD).encode(BASE, f"{ROOT}/storms/other", (1, 1))
    state.put(data, STORMS, "t")
    assert sign_anew(state, fence) == (0, 1)
    assert state.nodes[(STORMS, "t")].data == data


def test_one_that_leads_no_longer_signs_nothing() -> None:
    state = SignedState(Keyring(BOTH))
    former = state.lead()
    state.lead()
    state.stand(Keyring(OLD), BASE, STORMS, "t")
    with pytest.raises(FencedError):
        sign_anew(state, former)


def test_credentials_are_encrypted_with_the_first_token_too() -> None:
    state = SignedState(Keyring(BOTH))
    fence = state.lead()
    path = Paths(ROOT).of(CREDENTIALS, BASE.topology_id)
    record = sealed({"token": "s3cret"}, BASE.topology_id, path, Keyring(OLD))
    state.stand(Keyring(OLD), record, CREDENTIALS, BASE.topology_id)
    assert sign_anew(state, fence) == (1, 0)
    only_new = Keyring(NEW)
    found = only_new.decode(StoredCredentials, state.nodes[CREDENTIALS, BASE.topology_id].data, path)
    assert opened(found, path, only_new) == {"token": "s3cret"}
    assert sign_anew(state, fence) == (0, 0)
