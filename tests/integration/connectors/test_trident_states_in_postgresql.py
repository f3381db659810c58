"""States of Trident in a real PostgreSQL: connections that are lost, a server that starts again, other writers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from storm_on_spark import SetupError
from storm_on_spark.connectors.states import JdbcMapState
from storm_on_spark.runtime.processes.closing import Closing
from storm_on_spark.testing.servers.postgresql import USER, PostgresServer
from storm_on_spark.trident.state import FunctionUpdater, StateType
from storm_on_spark.trident.state.external import ExternalMapState, StoreAwayError


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    try:
        server = PostgresServer()
    except SetupError as error:
        pytest.skip(f"a real PostgreSQL can't be had here: {error}")
    with server:
        yield server


def connect(server: PostgresServer, port: int = 0, **options: Any) -> psycopg.Connection[Any]:
    given = {"password": server.password, **options}
    return psycopg.connect(host="127.0.0.1", port=port or server.port, user=USER, dbname="postgres", **given)


@pytest.fixture
def state(server: PostgresServer) -> Iterator[Callable[..., Any]]:
    """Makes states over an empty table."""
    with connect(server) as connection:
        connection.execute("DROP TABLE IF EXISTS storm_states")
    made: list[ExternalMapState] = []

    def make(kind: StateType = StateType.OPAQUE, **options: Any) -> ExternalMapState:
        factory = JdbcMapState(partial(connect, server, **options), "words", kind=kind, paramstyle="format")
        made.append(ExternalMapState(factory.open_store(), kind, "count-1", "0/1", pause=lambda seconds: None))
        return made[-1]

    yield make
    for each in made:
        each.close()


def add(state: Any, txid: int, **counts: int) -> list[int]:
    state.begin_commit(txid)
    updaters = [FunctionUpdater(lambda stored, count=count: (stored or 0) + count) for count in counts.values()]
    results: list[int] = state.multi_update([[key] for key in counts], updaters)
    state.commit(txid)
    return results


class Cutter(Closing):
    """A proxy that cuts a connection in the commit of what it has inserted: before the server or the client hears."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts: str = ""
        self.happened = 0
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._threads.append(threading.Thread(target=self._serve, args=[client]))
                self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server:
            inserted = threading.Event()
            back = threading.Thread(target=self._answer, args=[server, client, inserted])
            back.start()
            with suppress(OSError):
                while data := client.recv(65536):
                    if b"INSERT" in data:
                        inserted.set()
                    if inserted.is_set() and b"COMMIT" in data and self.cuts == "before the server hears":
                        self.happened += 1
                        break
                    server.sendall(data)
            for end in (server, client):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            back.join()

    def _answer(self, server: socket.socket, client: socket.socket, inserted: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if inserted.is_set() and b"COMMIT\0" in data and self.cuts == "before the client hears":
                    self.happened += 1
                    break
                client.sendall(data)
        for end in (server, client):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("kind", [StateType.OPAQUE, StateType.TRANSACTIONAL, StateType.NON_TRANSACTIONAL])
@pytest.mark.parametrize("cuts", ["before the server hears", "before the client hears"])
def test_a_connection_that_is_lost_in_its_commit(
    server: PostgresServer, state: Callable[..., Any], cuts: str, kind: StateType
) -> None:
    with Cutter(server.port) as cutter:
        counts = state(kind, port=cutter.port)
        add(state(kind), 1, a=1, b=1)
        counts.begin_commit(2)
        cutter.cuts = cuts
        updaters = [FunctionUpdater(lambda stored: (stored or 0) + 5)] * 2
        with pytest.raises(StoreAwayError, match=r"the database \(table storm_states\) can't be reached"):
            counts.multi_update([["a"], ["c"]], updaters)
        cutter.cuts = ""
        assert cutter.happened == 1
        written = cuts == "before the client hears"
        other = state(kind)
        assert other.multi_get([["a"], ["b"], ["c"]]) == ([6, 1, 5] if written else [1, 1, None])
        add(counts, 2, a=5, c=5)
        twice = written and kind is StateType.NON_TRANSACTIONAL
        assert other.multi_get([["a"], ["b"], ["c"]]) == ([11, 1, 10] if twice else [6, 1, 5])
        counts.close()


@pytest.mark.parametrize("ends", ["stop", "kill"])
def test_a_server_that_starts_again_has_what_was_committed(
    server: PostgresServer, state: Callable[..., Any], ends: str
) -> None:
    counts = state()
    add(counts, 1, a=1)
    getattr(server, ends)()
    for _ in range(3):
        with pytest.raises(StoreAwayError, match="the batch comes again") as caught:
            add(counts, 2, a=1)
        assert server.password not in str(caught.value)
    server.start()
    assert add(counts, 2, a=1) == [2]


def test_a_server_that_ends_amid_a_batch_has_none_of_it(server: PostgresServer, state: Callable[..., Any]) -> None:
    counts = state()
    add(counts, 1, a=1)
    counts.begin_commit(2)
    server.kill()
    server.start()
    with pytest.raises(StoreAwayError, match="the batch comes again"):
        counts.multi_update([["a"]], [FunctionUpdater(lambda stored: stored + 5)])
    assert state().multi_get([["a"]]) == [1]
    assert add(counts, 2, a=1) == [2]


def test_an_administrator_who_ends_a_connection_fails_the_batch(
    server: PostgresServer, state: Callable[..., Any]
) -> None:
    counts = state()
    add(counts, 1, a=1)
    with connect(server, autocommit=True) as other:
        ended = other.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ).fetchall()
    assert (True,) in ended
    with pytest.raises(StoreAwayError, match="terminating connection due to administrator command"):
        add(counts, 2, a=1)
    assert add(counts, 2, a=1) == [2]


def test_a_row_that_somebody_else_holds_fails_the_batch(server: PostgresServer, state: Callable[..., Any]) -> None:
    counts = state(options="-c lock_timeout=50ms")
    add(counts, 1, a=1)
    with connect(server) as other:
        other.execute("SELECT 1 FROM storm_states FOR UPDATE")
        with pytest.raises(StoreAwayError, match="lock timeout"):
            add(counts, 2, a=1)
    assert add(counts, 2, a=1) == [2]


def test_a_key_that_somebody_else_writes_meanwhile_fails_the_batch(
    server: PostgresServer, state: Callable[..., Any]
) -> None:
    counts = state()
    add(counts, 1, a=1)
    counts.begin_commit(2)
    failures: list[BaseException] = []

    def write() -> None:
        try:
            counts.multi_update([["new"]], [FunctionUpdater(lambda stored: 1)])
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    with connect(server) as other, connect(server, autocommit=True) as watch:
        other.execute("INSERT INTO storm_states VALUES ('words', '[\"new\"]', '[1,7,null]')")
        writer.start()
        while not watch.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchall():
            assert writer.is_alive(), failures
        other.commit()
    writer.join()
    assert [type(each) for each in failures] == [StoreAwayError]
    assert add(counts, 2, new=1) == [8]


def test_a_server_that_only_reads_fails_the_batch(state: Callable[..., Any]) -> None:
    add(state(), 1, a=1)
    with pytest.raises(StoreAwayError, match="read-only transaction"):
        add(state(options="-c default_transaction_read_only=on"), 2, a=1)
    assert add(state(), 2, a=1) == [2]


def test_a_wrong_password_is_not_told(server: PostgresServer, state: Callable[..., Any]) -> None:
    with pytest.raises(StoreAwayError, match="password authentication failed") as caught:
        add(state(password="not-the-one"), 1, a=1)
    assert "not-the-one" not in str(caught.value)
    assert server.password not in str(caught.value)


def test_a_connection_that_commits_by_itself_is_refused(state: Callable[..., Any]) -> None:
    with pytest.raises(SetupError, match="commits by itself"):
        add(state(autocommit=True), 1, a=1)


def test_rows_that_are_dictionaries_are_refused(state: Callable[..., Any]) -> None:
    add(state(), 1, a=1)
    with pytest.raises(SetupError, match="rows have to be sequences"):
        add(state(row_factory=dict_row), 2, a=1)
    assert state().multi_get([["a"]]) == [1]


def test_a_table_with_other_columns_ends_the_topology(server: PostgresServer, state: Callable[..., Any]) -> None:
    with connect(server) as connection:
        connection.execute("CREATE TABLE storm_states (name TEXT)")
    with pytest.raises(psycopg.errors.UndefinedColumn):
        add(state(), 1, a=1)


def test_a_user_who_may_make_no_tables_uses_the_one_that_is_there(
    server: PostgresServer, state: Callable[..., Any]
) -> None:
    add(state(), 1, a=1)
    with connect(server) as connection:
        connection.execute("DROP ROLE IF EXISTS counter")
        connection.execute("CREATE ROLE counter")
        connection.execute("GRANT SELECT, INSERT, DELETE ON storm_states TO counter")
    assert add(state(options="-c role=counter"), 2, a=1) == [2]
    with connect(server) as connection:
        connection.execute("DROP TABLE storm_states")
        connection.execute("DROP ROLE counter")
