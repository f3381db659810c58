"""States of Trident in real systems: Redis, a database, a Delta table."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from storm_on_spark import ConfigError, ReportedFailedException, SetupError
from storm_on_spark.connectors.states import DeltaMapState, JdbcMapState, RedisMapState
from storm_on_spark.testing.servers.postgresql import USER, PostgresServer
from storm_on_spark.testing.servers.redis import RedisServer
from storm_on_spark.trident.state import FunctionUpdater, StaleBatchError, StateType
from storm_on_spark.trident.state.encoding import EncodingError
from storm_on_spark.trident.state.external import ExternalMapState, ExternalMapStateFactory, StoreAwayError


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    try:
        server = RedisServer("hush")
    except SetupError as error:
        pytest.skip(f"a real Redis can't be had here: {error}")
    with server:
        yield server


def client(port: int, password: str = "hush") -> redis.Redis:
    return redis.Redis("127.0.0.1", port, password=password, socket_timeout=10, retry=Retry(NoBackoff(), 0))


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer()
    except SetupError as error:
        pytest.skip(f"a real PostgreSQL can't be had here: {error}")
    with server:
        yield server


@pytest.fixture
def connect_postgres(postgres: PostgresServer) -> Iterator[Callable[[], Any]]:
    """Connects to a database without tables."""
    made: list[Any] = []

    def connect() -> Any:
        where = {"host": "127.0.0.1", "port": postgres.port, "dbname": "postgres"}
        made.append(psycopg.connect(user=USER, password=postgres.password, **where))
        return made[-1]

    connection = connect()
    connection.execute("DROP TABLE IF EXISTS storm_states")
    connection.commit()
    yield connect
    for each in made:
        each.close()


Make = Callable[..., ExternalMapStateFactory]


@pytest.fixture(params=["redis", "sqlite", "postgresql", "delta"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes factories of states over one system."""
    if request.param == "redis":
        port = request.getfixturevalue("server").port
        client(port).flushall()
        return partial(RedisMapState, partial(client, port))
    if request.param == "postgresql":
        connect = request.getfixturevalue("connect_postgres")
        return partial(JdbcMapState, connect, paramstyle="format")
    if request.param == "sqlite":
        return partial(JdbcMapState, partial(sqlite3.connect, tmp_path / "states.db", timeout=20))
    return partial(DeltaMapState, tmp_path / "states")


def state_of(factory: ExternalMapStateFactory, run: str = "count-1", index: int = 0, tasks: int = 1) -> Any:
    state: Any = factory.make_state({}, SimpleNamespace(storm_id=run), index, tasks)  # type: ignore[arg-type]
    assert isinstance(state, ExternalMapState)
    return state


def add(state: Any, txid: int | None, **counts: int) -> list[int]:
    state.begin_commit(txid)
    updaters = [FunctionUpdater(lambda stored, count=count: (stored or 0) + count) for count in counts.values()]
    results: list[int] = state.multi_update([[key] for key in counts], updaters)
    state.commit(txid)
    return results


def test_values_are_there_for_a_new_task(make: Make) -> None:
    state = state_of(make("words"))
    assert add(state, 1, a=3, b=4) == [3, 4]
    state.begin_commit(2)
    state.set({"größe": [1, None, True, 0.5, "'x'"]})
    state.multi_put([["an'aus", 1]], [{"deep": {"er": []}}])
    state.commit(2)
    again = state_of(make("words"))
    assert again.multi_get([["a"], ["b"], ["c"], ["an'aus", 1]]) == [3, 4, None, {"deep": {"er": []}}]
    assert again.get() == {"größe": [1, None, True, 0.5, "'x'"]}
    assert state_of(make("others")).multi_get([["a"]]) == [None]


def test_many_keys_are_read_and_written_at_once(make: Make) -> None:
    keys = [[f"key {number}"] for number in range(1_200)]
    state = state_of(make("words"))
    state.begin_commit(1)
    state.multi_put(keys, list(range(1_200)))
    state.commit(1)
    again = state_of(make("words"))
    assert again.multi_get(keys) == list(range(1_200))
    again.begin_commit(2)
    assert again.multi_get(keys) == list(range(1_200))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(StateType.OPAQUE, 3 + 7), (StateType.TRANSACTIONAL, 3 + 5), (StateType.NON_TRANSACTIONAL, 3 + 5 + 7)],
)
def test_a_batch_that_comes_again_after_a_crash_is_taken_by_the_kinds_rule(
    make: Make, kind: StateType, expected: int
) -> None:
    add(state_of(make("words", kind=kind)), 1, a=3)
    add(state_of(make("words", kind=kind)), 2, a=5)
    add(state_of(make("words", kind=kind)), 2, a=7)
    assert state_of(make("words", kind=kind)).multi_get([["a"]]) == [expected]


@pytest.mark.parametrize("kind", [StateType.OPAQUE, StateType.TRANSACTIONAL])
def test_an_earlier_batch_is_refused(make: Make, kind: StateType) -> None:
    add(state_of(make("words", kind=kind)), 3, a=1)
    with pytest.raises(StaleBatchError, match="batch 2 is behind the state, which has batch 3"):
        add(state_of(make("words", kind=kind)), 2, b=1)
    assert state_of(make("words", kind=kind)).multi_get([["a"], ["b"]]) == [1, None]


def test_a_batch_that_comes_again_without_a_key_takes_back_what_it_did_to_it(make: Make) -> None:
    add(state_of(make("words")), 1, a=1)
    add(state_of(make("words")), 2, a=5, b=5, c=5)
    state = state_of(make("words"))
    assert add(state, 2, c=7) == [7]
    assert state_of(make("words")).multi_get([["a"], ["b"], ["c"]]) == [1, None, 7]
    assert add(state, 2, a=3) == [4]
    assert add(state, 3, a=1, b=1, c=1) == [5, 1, 1]


def test_another_run_may_not_write_earlier_batches(make: Make) -> None:
    for txid in (1, 2, 3):
        add(state_of(make("words")), txid, a=1)
    with pytest.raises(StaleBatchError, match="batch 1 is behind the state, which has batch 3"):
        add(state_of(make("words"), "count-2"), 1, b=1)
    assert state_of(make("words")).multi_get([["a"], ["b"]]) == [3, None]
    assert add(state_of(make("words"), "count-2"), 4, a=1) == [4]


def test_a_task_that_moved_and_came_back_does_not_believe_its_memory(make: Make) -> None:
    here, there = state_of(make("words")), state_of(make("words"))
    add(here, 1, a=1)
    add(there, 2, a=1)
    assert add(here, 3, a=1) == [3]


def test_two_tasks_write_to_one_state_at_once(make: Make) -> None:
    failures: list[BaseException] = []

    def write(index: int) -> None:
        try:
            state = state_of(make("words"), index=index, tasks=2)
            for txid in range(1, 6):
                while True:
                    try:
                        add(state, txid, **{f"of {index}": 1})
                        break
                    except ReportedFailedException:  # a database that is locked: the batch comes again
                        continue
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=[index]) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert state_of(make("words")).multi_get([["of 0"], ["of 1"]]) == [5, 5]


def test_what_another_kind_of_state_has_written_is_refused(make: Make) -> None:
    add(state_of(make("words", kind=StateType.TRANSACTIONAL)), 1, a=1)
    with pytest.raises(EncodingError, match="opaque value"):
        add(state_of(make("words")), 2, a=1)


def test_a_value_that_json_would_change_is_refused_and_nothing_is_written(make: Make) -> None:
    state = state_of(make("words"))
    state.begin_commit(1)
    with pytest.raises(EncodingError, match="must come back from JSON as it was"):
        state.multi_put([["a"], ["b"]], [1, (1, 2)])
    assert state_of(make("words")).multi_get([["a"]]) == [None]


# --- the systems ------------------------------------------------------------------------------------------------------


def test_a_redis_that_goes_fails_batches_and_loses_nothing() -> None:
    try:
        server = RedisServer()
    except SetupError as error:
        pytest.skip(f"a real Redis can't be had here: {error}")
    pauses: list[float] = []
    with server:
        factory = RedisMapState(partial(client, server.port, ""), "words")
        state = ExternalMapState(factory.open_store(), factory.kind, "count-1", "0/1", pause=pauses.append)
        add(state, 1, a=1)
        server.kill()
        for _ in range(3):
            with pytest.raises(
                StoreAwayError, match=r"Redis \(hash words\) can't be reached, so the batch comes again"
            ):
                add(state, 2, a=1)
        assert pauses == [0.1, 0.2, 0.4]
        server.start()
        assert add(state, 2, a=1) == [2]
        state.close()


def test_a_redis_that_goes_amid_a_batch_has_none_of_it() -> None:
    try:
        server = RedisServer()
    except SetupError as error:
        pytest.skip(f"a real Redis can't be had here: {error}")
    with server:
        state = state_of(RedisMapState(partial(client, server.port, ""), "words"))
        add(state, 1, a=1)
        state.begin_commit(2)
        server.kill()
        with pytest.raises(StoreAwayError):
            state.multi_update([["a"]], [FunctionUpdater(lambda stored: stored + 1)])
        server.start()
        assert add(state, 2, a=1) == [2]


def test_no_password_is_in_errors(server: RedisServer) -> None:
    factory = RedisMapState(partial(client, server.port, "wrong"), "words")
    state = ExternalMapState(factory.open_store(), factory.kind, "count-1", "0/1", pause=lambda seconds: None)
    with pytest.raises(StoreAwayError) as caught:
        add(state, 1, a=1)
    assert "wrong" not in str(caught.value).replace("WRONGPASS", "")
    assert caught.value.__cause__ is None


def test_a_database_that_is_locked_fails_the_batch(tmp_path: Path) -> None:
    place = tmp_path / "states.db"
    factory = JdbcMapState(partial(sqlite3.connect, place, timeout=0), "words")
    state = ExternalMapState(factory.open_store(), factory.kind, "count-1", "0/1", pause=lambda seconds: None)
    add(state, 1, a=1)
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreAwayError, match="locked"):
        add(state, 2, a=1)
    other.execute("ROLLBACK")
    other.close()
    assert add(state, 2, a=1) == [2]
    state.close()


def test_a_database_that_never_connected_fails_the_batch(tmp_path: Path) -> None:
    factory = JdbcMapState(partial(sqlite3.connect, tmp_path / "no" / "states.db"), "words")
    state = ExternalMapState(factory.open_store(), factory.kind, "count-1", "0/1", pause=lambda seconds: None)
    with pytest.raises(StoreAwayError, match="unable to open database file"):
        add(state, 1, a=1)


def test_a_database_has_a_batch_or_not(tmp_path: Path) -> None:
    place = tmp_path / "states.db"
    state = state_of(JdbcMapState(partial(sqlite3.connect, place), "words"))
    add(state, 1, a=1)
    with sqlite3.connect(place) as other:
        other.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON storm_states WHEN new.entry_key = '[\"b\"]' "
            "BEGIN SELECT raise(ABORT, 'half of the batch'); END"
        )
    with pytest.raises(sqlite3.IntegrityError, match="half of the batch"):
        add(state, 2, a=1, b=1)
    with sqlite3.connect(place) as other:
        rows = dict(other.execute("SELECT entry_key, entry_value FROM storm_states").fetchall())
        other.execute("DROP TRIGGER refuse")
    assert rows == {'["a"]': "[1,1,null]", "$mark 0/1": '{"run":"count-1","txid":1,"keys":["[\\"a\\"]"]}'}
    assert add(state, 2, a=1, b=1) == [2, 1]


def test_a_connection_that_commits_by_itself_is_refused(tmp_path: Path) -> None:
    connect = partial(sqlite3.connect, tmp_path / "states.db", isolation_level=None)
    with pytest.raises(SetupError, match="commits by itself"):
        add(state_of(JdbcMapState(connect, "words")), 1, a=1)


def test_a_key_that_is_too_long_for_a_primary_key_is_refused(tmp_path: Path) -> None:
    state = state_of(JdbcMapState(partial(sqlite3.connect, tmp_path / "states.db"), "words"))
    with pytest.raises(ConfigError, match="at most 500 characters"):
        add(state, 1, **{"a" * 600: 1})


@pytest.mark.parametrize(
    "make_one",
    [
        lambda: RedisMapState(None, "words"),  # type: ignore[arg-type]
        lambda: RedisMapState(client, ""),  # type: ignore[arg-type]
        lambda: RedisMapState(client, "words", kind="opaque"),  # type: ignore[arg-type]
        lambda: RedisMapState(client, "words", cache_size=0),  # type: ignore[arg-type]
        lambda: JdbcMapState(None, "words"),  # type: ignore[arg-type]
        lambda: JdbcMapState(client, "words", table="a; DROP TABLE b"),  # type: ignore[arg-type]
        lambda: JdbcMapState(client, "words", paramstyle="dollar"),  # type: ignore[arg-type]
        lambda: JdbcMapState(client, "w" * 101),  # type: ignore[arg-type]
        lambda: DeltaMapState("", "words"),
        lambda: DeltaMapState("/data/states", ""),
    ],
)
def test_arguments_that_make_no_sense_are_refused(make_one: Callable[[], Any]) -> None:
    with pytest.raises(ConfigError):
        make_one()
