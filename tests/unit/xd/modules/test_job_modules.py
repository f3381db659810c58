"""Modules of jobs that need no Spark, each by itself."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from storm_on_spark.xd.dsl import parse_job
from storm_on_spark.xd.modules import OptionError, find_module
from storm_on_spark.xd.modules.jobs.context import StepContext
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.steps import bound, check_steps

CONTEXT = StepContext("nightly", "step", 1, {"day": "7"})


def run(name: str, **options: str) -> None:
    module = find_module("job", name)
    module.component(CONTEXT, **module.values(options, "nightly"))


def test_timestampfile_writes_the_time(tmp_path: Path) -> None:
    for append in ("false", "true"):
        run("timestampfile", directory=str(tmp_path / "new"), append=append, format="yyyy")
    first, second = (tmp_path / "new" / "nightly.txt").read_text().splitlines()
    assert first == second
    assert 2000 < int(first) < 10_000


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)")
    return path


def rows(database: Path) -> list[Any]:
    with closing(sqlite3.connect(database)) as connection:
        return list(connection.execute("SELECT id, item FROM orders ORDER BY id"))


def load(database: Path, resources: Path, **more: str) -> None:
    given = {"resources": str(resources), "names": "id, item", "tableName": "orders", "database": str(database)}
    run("filejdbc", **{**given, **more})


def test_filejdbc_inserts_the_rows_of_all_files(tmp_path: Path, database: Path) -> None:
    (tmp_path / "a.csv").write_text('1,"tea; black"\n2,milk\n')
    (tmp_path / "b.csv").write_text("3,cup\n")
    load(database, tmp_path / "*.csv")
    assert rows(database) == [(1, "tea; black"), (2, "milk"), (3, "cup")]


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        ("1,tea\n1,milk\n", sqlite3.IntegrityError, "UNIQUE"),
        ("1,tea\n2\n", OptionError, "row 2: expected 2 values, got 1"),
    ],
)
def test_filejdbc_leaves_nothing_of_what_failed(
    tmp_path: Path, database: Path, content: str, kind: type[Exception], message: str
) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(kind, match=message):
        load(database, tmp_path / "a.csv")
    assert rows(database) == []


def test_filejdbc_says_what_is_missing(tmp_path: Path, database: Path) -> None:
    with pytest.raises(OptionError, match="none matches"):
        load(database, tmp_path / "none.csv")
    with pytest.raises(OptionError, match="Expected --connection"):
        load(database, tmp_path / "none.csv", driver="psycopg")


def test_a_module_of_a_user_is_a_function_with_options(tmp_path: Path) -> None:
    source = tmp_path / "copy.py"
    source.write_text(
        "from pathlib import Path\n"
        "from storm_on_spark.xd.modules import ModuleDeclaration, Option\n"
        "def note(context, where, times):\n"
        "    Path(where).write_text(f'{context.job} {context.step} {context.parameters} ' + 'x' * times)\n"
        "MODULE = ModuleDeclaration('job', 'note', 'Notes.', note, (\n"
        "    Option('where', 'text', None, 'Where.'), Option('times', 'integer', '1', 'How often.', minimum=1)))\n"
    )
    registry = LocalRegistry(tmp_path / "modules")
    assert registry.upload(source).type == "job"
    text = f"first:note --where={tmp_path}/out --times=3"
    (part,) = check_steps(parse_job(text, "nightly"), text, registry, {})
    bound(part, "nightly", text)(CONTEXT)
    assert (tmp_path / "out").read_text() == "nightly step {'day': '7'} xxx"
