"""Sparksql: a step that runs a query on files, and writes the result as files."""

from __future__ import annotations

import re
from typing import Final

from storm_on_spark.xd.modules.declaration import ModuleDeclaration, Option
from storm_on_spark.xd.modules.jobs.checks import a_master, a_path
from storm_on_spark.xd.modules.jobs.context import StepContext

_FORMATS: Final = ("csv", "json", "orc", "parquet", "text")
_READ: Final = {"csv": {"header": "true", "inferSchema": "true"}}
_WRITE: Final = {"csv": {"header": "true"}}


def sparksql(
    context: StepContext,
    input: str,  # noqa: A002 # the option's name
    input_format: str,
    view: str,
    query: str,
    output: str,
    output_format: str,
    mode: str,
    master: str,
) -> None:
    """Writes the result of a query.

    Raises:
        Exception: Spark can't read, execute or write.
    """
    spark = context.session(master)
    rows = spark.read.format(input_format).options(**_READ.get(input_format, {})).load(input)
    rows.createOrReplaceTempView(view)
    found = spark.sql(query)
    found.write.format(output_format).options(**_WRITE.get(output_format, {})).mode(mode).save(output)


def _a_view(text: str) -> None:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", text):
        raise ValueError(f"Expected the name of a view, got {text!r:.100}")


def _a_query(text: str) -> None:
    if not re.match(r"\s*(select|with|values|from|table)\b", text, re.IGNORECASE):
        raise ValueError(f"Expected a query that begins with SELECT or WITH, got {text!r:.100}")


JOB: Final = ModuleDeclaration(
    "job",
    "sparksql",
    "Runs a Spark SQL query on files, and writes the result as files.",
    sparksql,
    (
        Option("input", "text", None, "The files, or their folder.", check=a_path),
        Option("inputFormat", "text", "csv", "Format of the input; CSV has a line of names.", choices=_FORMATS),
        Option("view", "text", "input", "The name of the input in the query.", check=_a_view),
        Option("query", "text", "SELECT * FROM input", "The query.", check=_a_query),
        Option("output", "text", None, "The folder of the answer.", check=a_path),
        Option("outputFormat", "text", "parquet", "Format of the result.", choices=_FORMATS),
        Option(
            "mode",
            "text",
            "overwrite",
            "What to do if the folder exists.",
            choices=("overwrite", "append", "ignore", "error"),
        ),
        Option("master", "text", "", "Spark's master; empty for this machine.", check=a_master),
    ),
)
