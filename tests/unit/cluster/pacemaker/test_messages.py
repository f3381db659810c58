from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.cluster.errors import WireError
from storm_on_spark.cluster.pacemaker.frames import Frames
from storm_on_spark.cluster.pacemaker.messages import (
    REQUESTS,
    Control,
    Message,
    MessageType,
    Nodes,
    Pulse,
    Records,
    control,
    control_of,
    decode,
    frame,
    sasl_token,
    token_of,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
pulses = st.builds(Pulse, texts, st.none() | st.binary(max_size=60))
data = (
    st.none()
    | texts
    | pulses
    | st.booleans()
    | st.binary(max_size=60)
    | st.builds(Records, st.lists(pulses, max_size=4).map(tuple))
    | st.builds(Nodes, st.lists(texts, max_size=4).map(tuple))
)
some_messages = st.builds(Message, st.sampled_from(MessageType), data, st.integers(-(2**31), 2**31 - 1))


def test_a_pulse_has_storms_layout() -> None:
    assert frame(Message(MessageType.SEND_PULSE, Pulse("/w/t", b"\1\2"), 7)) == bytes.fromhex(
        "0000002b 080001 00000004 0c0002 0c00020b0001 00000004 2f772f74 0b0002 00000002 0102 00 00 080003 00000007 00"
    )


@given(some_messages)
def test_what_is_encoded_is_decoded(message: Message) -> None:
    encoded = frame(message)
    assert int.from_bytes(encoded[:4], "big") == len(encoded) - 4
    assert decode(encoded[4:]) == message


@given(st.lists(some_messages, max_size=5), st.data())
def test_frames_come_whole_however_their_bytes_arrive(sent: list[Message], choices: st.DataObject) -> None:
    stream = b"".join(map(frame, sent))
    frames, found, at = Frames(), [], 0
    while at < len(stream):
        size = choices.draw(st.integers(1, len(stream) - at))
        found += [decode(payload) for payload in frames.feed(stream[at : at + size])]
        at += size
    assert found == sent
    assert frames.held == 0


@given(some_messages, st.data())
def test_what_is_cut_off_or_changed_is_a_message_or_one_error(message: Message, choices: st.DataObject) -> None:
    payload = bytearray(frame(message)[4:])
    for _ in range(choices.draw(st.integers(1, 4))):
        payload[choices.draw(st.integers(0, len(payload) - 1))] = choices.draw(st.integers(0, 255))
    with contextlib.suppress(WireError):
        decode(bytes(payload[: choices.draw(st.integers(0, len(payload)))]))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_one_error(payload: bytes) -> None:
    try:
        found = decode(payload)
    except WireError:
        return
    assert decode(frame(found)[4:]) == found


@given(some_messages)
def test_a_message_that_is_cut_off_is_none(message: Message) -> None:
    payload = frame(message)[4:]
    for size in range(len(payload)):
        with pytest.raises(WireError):
            decode(payload[:size])


def test_fields_of_another_release_are_passed_over() -> None:
    structs = b"\x0f\0\x09\x0c\0\0\0\2\0\0" + b"\x0d\0\x0a\x0b\2\0\0\0\1\0\0\0\1x\1" + b"\x0a\0\x0b" + bytes(8)
    assert decode(structs + b"\x08\0\1\0\0\0\2" + b"\x0c\0\2\x0b\0\1\0\0\0\1/\0" + b"\0") == Message(
        MessageType.EXISTS, "/"
    )


HEAD = b"\x08\0\1\0\0\0\4"


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (b"", "ends in the middle"),
        (b"\0", "has no type"),
        (b"\x08\0\1\0\0\0\x13\0", "type 19; types are 0 to 18"),
        (HEAD + b"\0\0", "1 bytes follow the end"),
        (HEAD + b"\x0c\0\2\x0b\0\1\xff\xff\xff\xff\0\0", "claims -1 bytes"),
        (HEAD + b"\x0c\0\2\x0b\0\1\x7f\xff\xff\xff\0\0", "claims 2,147,483,647 bytes; 2 are left"),
        (HEAD + b"\x0c\0\2\x0b\0\1\0\0\0\1\xff\0\0", "not UTF-8"),
        (HEAD + b"\x0c\0\2\x0b\0\1\0\0\0\1/\2\0\3\1\0\0", "have two values"),
        (HEAD + b"\x0c\0\2\x0c\0\2\0\0\0", "a pulse has no id"),
        (HEAD + b"\x0c\0\2\x0c\0\5\x0f\0\1\x0b\0\0\0\x09\0\0\0\0", "claims 9 values; 4 bytes are left"),
        (HEAD + b"\x0c\0\2\x0c\0\5\x0f\0\1\2\0\0\0\1\1\0\0\0", "type 2, but must hold type 11"),
        (HEAD + b"\x07\0\x09\0", "type 7, which doesn't exist"),
        (HEAD + b"\x0c\0\x09" * 40 + bytes(41), "more than 16 deep"),
    ],
)
def test_what_is_wrong_is_said(payload: bytes, said: str) -> None:
    with pytest.raises(WireError, match=said):
        decode(payload)


def test_a_message_of_very_many_tiny_fields_is_refused_before_they_are_read() -> None:
    payload = HEAD + b"\2\0\x63\1" * 100 + b"\0"
    assert decode(payload).type is MessageType.SEND_PULSE
    with pytest.raises(WireError, match="more than 50 fields"):
        decode(payload, most_values=50)
    with pytest.raises(WireError, match="more than 50 fields"):
        decode(HEAD + b"\x0f\0\x09\2\0\0\0\x64" + bytes(101), most_values=50)


def test_a_frame_beyond_the_limit_is_refused_at_its_length() -> None:
    with pytest.raises(WireError, match="claims 11 bytes; 0 to 10 are allowed"):
        Frames(10).feed(struct.pack(">i", 11))
    with pytest.raises(WireError, match="claims -2 bytes"):
        Frames(10).feed(struct.pack(">i", -2))
    frames = Frames(10)
    assert frames.feed(b"\0\0") == []
    with pytest.raises(WireError, match="claims 255 bytes"):
        frames.feed(b"\0\xff")


@pytest.mark.parametrize("code", Control)
def test_a_control_code_is_carried(code: Control) -> None:
    assert control_of(decode(frame(control(code))[4:])) is code


@given(st.binary(max_size=300))
def test_a_token_is_carried(token: bytes) -> None:
    assert token_of(decode(frame(sasl_token(token))[4:])) == token


@given(st.binary(max_size=20))
def test_a_wrong_token_or_code_is_one_error(blob: bytes) -> None:
    for kind, reads in ((MessageType.CONTROL_MESSAGE, control_of), (MessageType.SASL_MESSAGE_TOKEN, token_of)):
        with contextlib.suppress(WireError):
            reads(Message(kind, blob))
        with pytest.raises(WireError, match=r"expected a .* with bytes, not a "):
            reads(Message(MessageType.EXISTS, blob))
        with pytest.raises(WireError, match=r"expected a .* with bytes, not a "):
            reads(Message(kind, "text"))


def test_each_request_has_a_reply() -> None:
    assert [each.reply.name for each in REQUESTS] == [f"{each.name}_RESPONSE" for each in REQUESTS]
    with pytest.raises(WireError, match="NOT_AUTHORIZED is not a request"):
        _ = MessageType.NOT_AUTHORIZED.reply
    assert len(REQUESTS) == 8
