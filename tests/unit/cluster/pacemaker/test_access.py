"""Who may do what: the whole table, written out a second time."""

from __future__ import annotations

import itertools

import pytest

from storm_on_spark.cluster.errors import WireError
from storm_on_spark.cluster.pacemaker.access import READS, WRITES, Identity, Role, Rules
from storm_on_spark.cluster.pacemaker.heartbeats import Heartbeats
from storm_on_spark.cluster.pacemaker.messages import REQUESTS, Message, MessageType, Nodes, Pulse, Records
from storm_on_spark.cluster.pacemaker.metrics import Metrics
from storm_on_spark.cluster.pacemaker.operations import Operations, Refused

OWN, OTHER, ELSEWHERE = "/workerbeats/words-1/a-6700", "/workerbeats/words-12/a-6700", "/other/words-1"
WHO: dict[Role, Identity] = {
    "anyone": Identity("anyone", "words-1"),
    "daemon": Identity("daemon", "pacemaker-client"),
    "topology": Identity("topology", "words-1"),
}
T = MessageType
EVERYWHERE = frozenset({OWN, OTHER, ELSEWHERE})
NOWHERE: frozenset[str] = frozenset()
MINE = frozenset({OWN})
EXPECTED: dict[tuple[str, bool], dict[Role, tuple[frozenset[str], frozenset[str]]]] = {
    # method, login for writes: role -> where it may read, where it may write
    ("NONE", True): dict.fromkeys(WHO, (EVERYWHERE, EVERYWHERE)),
    ("NONE", False): dict.fromkeys(WHO, (EVERYWHERE, EVERYWHERE)),
    **{
        (method, True): {
            "anyone": (NOWHERE, NOWHERE),
            "topology": (NOWHERE, MINE),
            "daemon": (EVERYWHERE, EVERYWHERE),
        }
        for method in ("DIGEST", "KERBEROS")
    },
    **{
        (method, False): {
            "anyone": (NOWHERE, EVERYWHERE),
            "topology": (NOWHERE, MINE),
            "daemon": (EVERYWHERE, EVERYWHERE),
        }
        for method in ("DIGEST", "KERBEROS")
    },
}


def test_every_operation_reads_or_writes() -> None:
    assert set(REQUESTS) == READS | WRITES
    assert not READS & WRITES
    assert {each.name for each in READS} == {"EXISTS", "GET_PULSE", "GET_ALL_NODES_FOR_PATH", "GET_ALL_PULSE_FOR_PATH"}


@pytest.mark.parametrize("operation", MessageType)
@pytest.mark.parametrize("rule", EXPECTED)
def test_the_table_over_all_operations(rule: tuple[str, bool], operation: MessageType) -> None:
    rules = Rules(*rule)  # type: ignore[arg-type]
    for role, path in itertools.product(WHO, EVERYWHERE):
        read, write = EXPECTED[rule][role]
        allowed = path in (read if operation in READS else write) if operation in REQUESTS else False
        assert rules.allows(WHO[role], operation, path) == allowed, (role, path)
        beats = Heartbeats()
        beats.put(path, b"before", "somebody", 0)
        answers = Operations(beats, rules, Metrics(), 1 << 20)
        data = Pulse(path, b"1") if operation is T.SEND_PULSE else path
        if allowed:
            assert answers.answer(Message(operation, data, 5), WHO[role], 1).type is operation.reply
        else:
            with pytest.raises((Refused, WireError)):
                answers.answer(Message(operation, data, 5), WHO[role], 1)
            assert beats.get(path) == b"before"
            assert len(beats) == 1


@pytest.mark.parametrize("path", ["/workerbeats", "/workerbeats/words-1x", "/workerbeats/words", "/words-1"])
def test_a_topology_has_its_own_folder_and_no_other(path: str) -> None:
    rules = Rules("DIGEST")
    assert not any(rules.allows(WHO["topology"], operation, path) for operation in REQUESTS)
    assert rules.allows(WHO["topology"], T.DELETE_PATH, "/workerbeats/words-1")


def operations(answer_bytes: int = 1 << 20) -> Operations:
    return Operations(Heartbeats(), Rules(), Metrics(), answer_bytes)


def ask(server: Operations, type_: MessageType, data: Pulse | str | None) -> object:
    answer = server.answer(Message(type_, data, 42), WHO["anyone"], 0)
    assert answer.type is type_.reply
    assert answer.id == 42
    return answer.data


def test_each_operation_does_what_its_name_says_and_the_same_when_repeated() -> None:
    server = operations()
    for _ in range(2):
        assert ask(server, T.SEND_PULSE, Pulse("/a/b/c", b"1")) is None
        assert ask(server, T.CREATE_PATH, "/a/empty") is None
        assert ask(server, T.EXISTS, "/a/b/c") is True
        assert ask(server, T.EXISTS, "/a/b") is True
        assert ask(server, T.EXISTS, "/a/empty") is True
        assert ask(server, T.EXISTS, "/a/x") is False
        assert ask(server, T.GET_PULSE, "/a/b/c") == Pulse("/a/b/c", b"1")
        assert ask(server, T.GET_PULSE, "/a/b") == Pulse("/a/b", None)
        assert ask(server, T.GET_ALL_NODES_FOR_PATH, "/a") == Nodes(("b", "empty"))
        assert ask(server, T.GET_ALL_NODES_FOR_PATH, "/") == Nodes(("a",))
        assert ask(server, T.GET_ALL_PULSE_FOR_PATH, "/a") == Records((Pulse("/a/b/c", b"1"),))
    for _ in range(2):
        assert ask(server, T.DELETE_PULSE_ID, "/a/b") is None
        assert ask(server, T.EXISTS, "/a/b/c") is True
    for _ in range(2):
        assert ask(server, T.DELETE_PATH, "/a/b") is None
        assert ask(server, T.EXISTS, "/a/b/c") is False
        assert ask(server, T.EXISTS, "/a/b") is False


def test_all_pulses_that_dont_fit_are_answered_as_storm_does_without_any() -> None:
    server = operations(answer_bytes=5000)
    ask(server, T.SEND_PULSE, Pulse("/a/b", bytes(3000)))
    assert ask(server, T.GET_ALL_PULSE_FOR_PATH, "/a") == Records((Pulse("/a/b", bytes(3000)),))
    ask(server, T.SEND_PULSE, Pulse("/a/c", bytes(3000)))
    assert ask(server, T.GET_ALL_PULSE_FOR_PATH, "/a") is None


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        (T.SEND_PULSE, "/a"),
        (T.SEND_PULSE, Pulse("/a")),
        (T.SEND_PULSE, Pulse("a", b"")),
        (T.GET_PULSE, None),
        (T.GET_PULSE, Pulse("/a", b"")),
        (T.DELETE_PATH, "a//b"),
        (T.NOT_AUTHORIZED, "/a"),
        (T.GET_PULSE_RESPONSE, "/a"),
    ],
)
def test_what_is_no_request_is_an_error(type_: MessageType, data: Pulse | str | None) -> None:
    with pytest.raises(WireError):
        operations().answer(Message(type_, data, 1), WHO["daemon"], 0)
