"""Credentials of a topology as they are kept: what they may be, who can read them, and where they never appear."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from storm_on_spark.api.errors import SetupError
from storm_on_spark.cli.main import main
from storm_on_spark.cluster.credentials import MOST_BYTES, checked_credentials, encrypted_anew, opened, sealed
from storm_on_spark.cluster.errors import RecordError, SignatureError, TransitionError
from storm_on_spark.cluster.records import StoredCredentials, decode, encode
from storm_on_spark.cluster.security.keyring import Keyring
from storm_on_spark.cluster.security.tokens import Tokens

PATH = "/storm/credentials/words-1-1"
SECRET = "correct-horse-battery"
OLD, NEW = "o" * 16, "n" * 16
KEYRING = Keyring(Tokens((OLD,)))


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [("token", SECRET)],
        SECRET,
        {"token": 7},
        {"token": None},
        {"token": SECRET.encode()},
        {"token": {"token": SECRET}},
        {7: SECRET},
        {"": SECRET},
        {"a\n": SECRET},
        {"n" * 201: SECRET},
        {"token": SECRET + "\ud800"},
        {"token": SECRET * 4000},
        {f"token{number}": SECRET * 10 for number in range(400)},
    ],
)
def test_what_is_no_mapping_of_names_to_texts_or_too_large_is_refused_without_a_value(wrong: Any) -> None:
    with pytest.raises(TransitionError) as caught:
        checked_credentials(wrong)
    assert SECRET not in str(caught.value)


def test_as_much_as_there_may_be_is_taken() -> None:
    most = {"é": "x" * (MOST_BYTES - 2)}
    assert checked_credentials(most) == most
    assert checked_credentials({}) == {}
    record = sealed(most, "words-1-1", PATH, KEYRING)
    node = KEYRING.encode(record, PATH)
    assert opened(KEYRING.decode(StoredCredentials, node, PATH), PATH, KEYRING) == most


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=20), max_size=5))
def test_what_is_sealed_is_opened(credentials: dict[str, str]) -> None:
    try:
        credentials = checked_credentials(credentials)
    except TransitionError:
        return
    assert opened(sealed(credentials, "words-1-1", PATH, KEYRING), PATH, KEYRING) == credentials


def test_a_node_shows_neither_names_nor_values_and_no_two_are_alike() -> None:
    first, second = (sealed({"token": SECRET}, "words-1-1", PATH, KEYRING) for _ in range(2))
    assert first.sealed != second.sealed
    for record in (first, second):
        node = KEYRING.encode(record, PATH)
        for text in (node, base64.b64decode(record.sealed), repr(record).encode()):
            assert SECRET.encode() not in text
            assert b"token" not in text
            assert OLD.encode() not in text


def test_only_whoever_has_the_secret_can_read_it_at_its_place_and_unchanged() -> None:
    record = sealed({"token": SECRET}, "words-1-1", PATH, KEYRING)
    with pytest.raises(SignatureError, match="not known here"):
        opened(record, PATH, Keyring(Tokens((NEW,))))
    with pytest.raises(SignatureError, match="not known here"):
        opened(record, PATH, Keyring())
    with pytest.raises(SignatureError, match="copied from elsewhere"):
        opened(record, PATH.replace("words", "other"), KEYRING)
    data = base64.b64decode(record.sealed)
    for place in range(0, len(data), 7):
        changed = bytearray(data)
        changed[place] ^= 1
        damaged = StoredCredentials(
            topology_id="words-1-1", key=record.key, sealed=base64.b64encode(changed).decode("ascii")
        )
        with pytest.raises(SignatureError, match="was changed"):
            opened(damaged, PATH, KEYRING)
    for text in ("", "AAAA", "no base64"):
        with pytest.raises(SignatureError, match="was changed"):
            opened(StoredCredentials(topology_id="words-1-1", key=record.key, sealed=text), PATH, KEYRING)
    key, text = KEYRING.encrypt(b"[]", PATH)
    with pytest.raises(RecordError, match="holds no credentials"):
        opened(StoredCredentials(topology_id="words-1-1", key=key, sealed=text), PATH, KEYRING)


def test_a_new_token_in_front_encrypts_them_anew_so_that_the_old_one_can_go() -> None:
    record = sealed({"token": SECRET}, "words-1-1", PATH, KEYRING)
    both = Keyring(Tokens((NEW, OLD)))
    again = encrypted_anew(record, PATH, both)
    assert again.key != record.key
    assert opened(again, PATH, Keyring(Tokens((NEW,)))) == {"token": SECRET}
    assert encrypted_anew(again, PATH, both) is again


def test_a_cluster_without_a_secret_or_the_library_keeps_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match=r"no secret to encrypt with: set nimbus\.auth\.token\.file"):
        sealed({"token": SECRET}, "words-1-1", PATH, Keyring())
    record = sealed({"token": SECRET}, "words-1-1", PATH, KEYRING)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(SetupError, match=r"pip install .*\[credentials\]"):
        sealed({"token": SECRET}, "words-1-1", PATH, KEYRING)
    with pytest.raises(SetupError, match="needs cryptography, which is not installed"):
        opened(record, PATH, KEYRING)


def test_the_record_is_signed_and_has_a_version() -> None:
    record = sealed({"token": SECRET}, "words-1-1", PATH, KEYRING)
    assert StoredCredentials.signed
    assert decode(StoredCredentials, encode(record), PATH) == record
    with pytest.raises(SignatureError, match="not signed"):
        KEYRING.decode(StoredCredentials, encode(record), PATH)


# The command line, up to where it would ask a Nimbus; nobody listens there.


def uploaded(*words: str, text: str | bytes = "") -> Result:
    nobody = ["--nimbus", "127.0.0.1:1", "-c", "storm.nimbus.retry.times=0"]
    return CliRunner().invoke(main, ["upload-credentials", "words", *words, *nobody], input=text)


@pytest.mark.parametrize("words", [["token", SECRET], [f"token={SECRET}"], ["-", SECRET], ["-f", "-", "token", SECRET]])
def test_pairs_on_the_command_line_are_refused_and_not_repeated(words: list[str]) -> None:
    done = uploaded(*words)
    assert done.exit_code == 2
    assert "credentials are not taken from the command line" in " ".join(done.output.split())
    assert SECRET not in done.output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f'{{"token": "{SECRET}"', "begins like JSON, but is none"),
        (f'["{SECRET}"]', "a mapping, name to text"),
        (f'{{"token": ["{SECRET}"]}}', "the value of 'token' has to be text, and is of type list"),
        ("# nothing\n", "holds no credentials"),
        (f"token={SECRET}\\uzzzz", "is no properties file"),
        (b"token=\xff" + SECRET.encode(), "not UTF-8 text"),
        (f"token={SECRET * 60_000}", "more than 1,048,576 bytes"),
        (f"token={SECRET * 4000}", "a topology can have 64,000"),
    ],
)
def test_what_comes_from_standard_input_is_checked_and_not_repeated(text: str | bytes, says: str) -> None:
    done = uploaded("-", text=text)
    assert done.exit_code == 1
    assert says in " ".join(done.output.split())
    assert SECRET not in done.output
    assert done.exception is None or SECRET not in repr(done.exception)


def test_a_file_that_others_can_read_is_refused_and_one_place_is_enough(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps({"token": SECRET}))
    file.chmod(0o644)
    done = uploaded("-f", str(file))
    assert done.exit_code == 1
    assert "can be read by others than its owner" in " ".join(done.output.split())
    assert uploaded().exit_code == uploaded("-f", str(file), "-").exit_code == 2
