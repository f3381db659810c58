"""What Storm's own client and server sent each other, byte for byte (recorded by `record_frames.py`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from storm_on_spark.cluster.pacemaker.messages import (
    REQUESTS,
    Control,
    Message,
    MessageType,
    Nodes,
    Pulse,
    control_of,
    decode,
    frame,
    sasl_token,
    token_of,
)
from storm_on_spark.cluster.security import digest

RECORDED: dict[str, list[tuple[str, str]]] = json.loads(Path(__file__).with_name("recorded.json").read_text("utf-8"))
T = MessageType


def messages(method: str, sender: str) -> Iterator[Message]:
    for each, payload in RECORDED[method]:
        if each == sender:
            yield decode(bytes.fromhex(payload))


@pytest.mark.parametrize("method", RECORDED)
def test_storms_bytes_are_read_and_written_again_as_they_were(method: str) -> None:
    for _, payload in RECORDED[method]:
        assert frame(decode(bytes.fromhex(payload)))[4:].hex() == payload


def test_storms_client_has_every_operation_and_its_server_every_answer() -> None:
    asked = {each.id: each for each in messages("NONE", "client")}
    answered = {each.id: each for each in messages("NONE", "server")}
    assert {each.type for each in asked.values()} == set(REQUESTS)
    assert asked.keys() == answered.keys()
    for number, request in asked.items():
        assert answered[number].type is request.type.reply
    data = {(each.type, repr(each.data)): answered[each.id].data for each in asked.values()}
    assert Pulse("/c/t-1/ä", bytes(range(256))) in [each.data for each in asked.values()]
    assert data[T.GET_PULSE, repr("/c/t-1/ä")] == Pulse("/c/t-1/ä", bytes(range(256)))
    assert data[T.GET_PULSE, repr("/nothing")] == Pulse("/nothing", None)
    assert data[T.GET_ALL_NODES_FOR_PATH, repr("/c")] == Nodes(("t-1",))
    assert data[T.GET_ALL_NODES_FOR_PATH, repr("/nothing")] == Nodes(())
    assert data[T.GET_ALL_PULSE_FOR_PATH, repr("/c")] is None
    assert data[T.EXISTS, repr("/c/t-1/b")] is True


def test_storms_login_is_the_one_that_is_computed_here() -> None:
    begin, answered = list(messages("DIGEST", "client"))[:2]
    asked, last, done = list(messages("DIGEST", "server"))[:3]
    assert control_of(begin) is Control.SASL_TOKEN_MESSAGE_REQUEST
    assert control_of(done) is Control.SASL_COMPLETE_REQUEST
    login = digest.Login("pacemaker-client", digest.storm_secret("some username", "some password"))
    nonce = digest.pairs_of(token_of(asked))["nonce"]
    answer = digest.read_answer(token_of(answered), nonce)
    assert answer.name == login.name
    # Storm's server accepted Storm's client, with the same last token.
    assert digest.verify(answer, login.secret) == token_of(last)
    assert digest.verify(answer, "another secret") is None
    mine = digest.Answering(login, cnonce=answer.cnonce)
    assert digest.read_answer(mine.answer(token_of(asked)), nonce) == answer
    mine.check(token_of(last))
    assert sorted(digest.pairs_of(digest.challenge(nonce)).items()) == sorted(digest.pairs_of(token_of(asked)).items())
    assert token_of(sasl_token(b"x")) == b"x"
