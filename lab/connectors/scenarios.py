"""The faults: each is injected while the topology works, and each proves that it happened."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from lab.connectors.oracles import FOREIGN_KEY
from lab.connectors.pipeline import FAILS_EVERY, PARTITIONS, TOPIC
from lab.connectors.run import Run
from lab.suite.scenario import Scenario, ScenarioError

_OTHER_SECS: Final = 1.0
"""Seconds between two transactions of another writer: a MERGE that conflicts with one must begin again."""
_DELETED: Final = 200
"""Records of each partition that are deleted before they are read, beyond those that are."""


def _killed(run: Run, times: int) -> None:
    run.begin()
    victims = ("driver", "worker", "spout host") * times
    for number, victim in enumerate(victims):
        rows = run.until(run.next_share(number, len(victims)))
        if victim == "driver":
            proof = run.kill()
            run.start()
        else:
            proof = run.kill_one(victim)
        run.injected(f"{victim} killed at {rows} rows", proof)


def _broker(run: Run, times: int, *, plain: bool) -> None:
    run.begin(plain=plain)
    for number in range(times):
        rows = run.until(run.next_share(number, times))
        before = run.server.pid
        run.server.kill()
        between = run.server.pid
        run.server.start()
        pids = (before, between, run.server.pid)
        if between is not None or None in (before, run.server.pid) or before == run.server.pid:
            raise ScenarioError(f"the broker was to be killed, and another process to follow: {pids}")
        run.injected(f"broker killed at {rows} rows and started again", f"process {pids[0]}, then {pids[2]}")


def _broker_native(run: Run, times: int) -> None:
    _broker(run, times, plain=False)


def _broker_plain(run: Run, times: int) -> None:
    _broker(run, times, plain=True)


def _deleted(run: Run, times: int) -> None:
    from kafka import KafkaAdminClient, TopicPartition

    run.begin()
    for number in range(times):
        run.until(run.next_share(number, times, most=0.7))
        run.kill()
        table = DeltaTable(run.folder / "rows").to_pyarrow_table(columns=["partition", "offset", "number"]).to_pylist()
        present = {row["number"] for row in table}
        read = run.read_up_to()
        begins = {place: max(end, _end(table, place)) + _DELETED for place, end in read.items()}
        admin = KafkaAdminClient(bootstrap_servers=run.server.bootstrap_servers)
        try:
            admin.delete_records({TopicPartition(TOPIC, place): begin for place, begin in begins.items()})
        finally:
            admin.close()
        # A number's partition and offset follow from it, as the topic was filled. What has failed is kept by the spout.
        before = {offset * PARTITIONS + place for place, begin in begins.items() for offset in range(begin)}
        done = {each for each in before if each // PARTITIONS < read[each % PARTITIONS]}
        gone = before - present - {each for each in done if each % FAILS_EVERY == 0} - run.gone
        run.gone |= gone
        run.uncounted |= present - done
        run.start()
        error = run.ended()
        if "OffsetOutOfRange" not in error or TOPIC not in error:
            raise ScenarioError(f"the error says nothing of the records that are gone: {error:.500}")
        run.injected(f"{len(gone)} records deleted before they were read", f"records up to {begins}; {error[-200:]}")
        run.start(earliest=True)


def _end(table: list[dict[str, int]], place: int) -> int:
    return max((row["offset"] for row in table if row["partition"] == place), default=-1) + 1


def _schema(run: Run, times: int) -> None:
    run.begin()
    place = run.folder / "rows"
    for number in range(times):
        rows = run.until(run.next_share(number, times))
        _make_text(place)
        version = DeltaTable(place).version()
        before = next(each for each in range(version, -1, -1) if _kind(place, each) == "long")
        error = run.ended()
        if "is string, and the bolt writes long" not in error:
            raise ScenarioError(f"the error doesn't say what has changed: {error:.500}")
        run.injected(f"columns made text at {rows} rows", f"version {version}: {error[:200]}")
        DeltaTable(place).restore(before)
        run.start()


def _make_text(place: Path, attempts: int = 20) -> None:
    """Makes the columns text; the table has no rows then, until it is restored."""
    changed = pa.table({name: pa.array([], pa.string()) for name in ("key", "number", "partition", "offset")})
    for attempt in range(attempts):
        try:
            write_deltalake(place, changed, mode="overwrite", schema_mode="overwrite")
            return
        except CommitFailedError:
            # The topology was faster.
            if attempt + 1 == attempts:
                raise


def _kind(table: Path, version: int) -> str:
    fields = DeltaTable(table, version=version).schema().fields
    return str(getattr(fields[0].type, "type", fields[0].type))


def _concurrent(run: Run, times: int) -> None:
    run.begin()
    stop, written = threading.Event(), [0, 0]

    def write() -> None:
        while not stop.wait(_OTHER_SECS):
            for at, name in enumerate(("rows", "keys")):
                columns = ("key", "number", "partition", "offset") if name == "rows" else ("key", "count", "sum")
                row = pa.table({column: pa.array([FOREIGN_KEY], pa.int64()) for column in columns})
                try:
                    write_deltalake(run.folder / name, row, mode="append")
                except CommitFailedError:
                    continue
                written[at] += 1

    run.until(0.01)
    other = threading.Thread(target=write, daemon=True)
    other.start()
    try:
        for number in range(times):
            before = list(written)
            rows = run.until(run.next_share(number, times))
            proof = (
                f"{written[0] - before[0]} and {written[1] - before[1]} transactions of the other writer; {run.kill()}"
            )
            run.injected(f"driver killed at {rows} rows beside another writer", proof)
            run.start()
        run.until(0.95)
    finally:
        stop.set()
        other.join()
    for at, name in enumerate(("rows", "keys")):
        found = DeltaTable(run.folder / name).to_pyarrow_table(columns=["key"])["key"].to_pylist().count(FOREIGN_KEY)
        if not written[at] or found != written[at]:
            raise ScenarioError(f"the other writer wrote {written[at]} rows into {name}, and {found} are there")


def _sink_fails(run: Run, times: int) -> None:
    run.begin()
    for number in range(times):
        rows = run.until(run.next_share(number, times))
        # The second of the two tables: the first is written, and its transaction must not be there twice.
        log, aside = run.folder / "rows" / "_delta_log", run.folder / "aside"
        log.rename(aside)
        log.write_text("no folder", "utf-8")
        error = run.ended()
        if 'bolt "rows" could not write micro-batch' not in error:
            raise ScenarioError(f"the topology ended otherwise: {error:.500}")
        log.unlink()
        aside.rename(log)
        done, other = (set(_transactions(run.folder / name)) for name in ("keys", "rows"))
        run.injected(
            f"table's log unwritable at {rows} rows", f"{error[:160]}; {len(done - other)} only in the first table"
        )
        run.start()


def _transactions(table: Path) -> list[int]:
    found = []
    for path in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
        written = [action["txn"] for action in actions if "txn" in action]
        # The other id of a writer records how it was planned.
        found += [each["version"] for each in written if not each["appId"].endswith("/plan")]
    return found


def _between(run: Run, times: int) -> None:
    run.begin(copies=True)
    hold, held = run.folder / "hold", run.folder / "held"
    for number in range(times):
        rows = run.until(run.next_share(number, times))
        hold.touch()
        run.wait(held.exists, "a transaction")
        run.wait(lambda: held.read_text() != "", "its number")
        batch = int(held.read_text())
        killed = run.kill()
        if run.committed(batch) or batch not in _transactions(run.folder / "rows"):
            raise ScenarioError(f"micro-batch {batch} was to be in the table, and not in the checkpoint")
        held.unlink()
        hold.unlink()
        run.injected(
            f"driver killed at {rows} rows", f"{killed}; micro-batch {batch} is in the table, and not committed"
        )
        run.start()


SCENARIOS: tuple[Scenario[Run], ...] = (
    Scenario("mixed", "driver, Python worker and spout host killed in turn", _killed),
    Scenario("broker", "Kafka's broker killed and started again, `KafkaSpout`", _broker_native),
    Scenario("broker-plain", "the same, `PlainKafkaSpout`", _broker_plain),
    Scenario("deleted", "records deleted before they were read, then `auto.offset.reset`: `earliest`", _deleted),
    Scenario("schema", "the table's columns get another type, then their own", _schema),
    Scenario("concurrent", "another writer in both tables, and the driver killed", _concurrent),
    Scenario("sink", "the second of two tables can't be written, then can", _sink_fails),
    Scenario("between", "driver killed between Delta's commit and Spark's, with a copy in Kafka", _between),
)
