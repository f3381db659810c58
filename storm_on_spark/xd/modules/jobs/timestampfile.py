"""Timestampfile: a job that writes the time to a file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

from storm_on_spark.xd.modules.dates import check_pattern, format_date
from storm_on_spark.xd.modules.declaration import STREAM_NAME, ModuleDeclaration, Option
from storm_on_spark.xd.modules.jobs.checks import a_path
from storm_on_spark.xd.modules.jobs.context import StepContext


def timestampfile(
    context: StepContext,
    directory: str,
    file_name: str,
    file_extension: str,
    append: bool,  # an option
    format: str,  # noqa: A002 # the option's name
) -> None:
    """Writes a line with the time.

    Raises:
        OSError: it can't be written.
    """
    path = Path(directory) / f"{file_name}.{file_extension}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if append else "w", encoding="utf-8") as file:
        file.write(format_date(format, datetime.now()) + "\n")  # noqa: DTZ005 # as XD, the local time


def _a_name(text: str) -> None:
    a_path(text)
    if "/" in text or text.startswith("."):
        raise ValueError(f"Expected a name without '/', got {text!r:.100}")


JOB: Final = ModuleDeclaration(
    "job",
    "timestampfile",
    "Writes the time to a file.",
    timestampfile,
    (
        Option("directory", "text", "/tmp/xd/output", "The folder; it is made if it is missing.", check=a_path),  # noqa: S108 # as XD
        Option("fileName", "text", STREAM_NAME, "The file; by default the job's name.", check=_a_name),
        Option("fileExtension", "text", "txt", "The extension of the file's name.", check=_a_name),
        Option("append", "boolean", "false", "Keep the lines that are there."),
        Option(
            "format", "text", "yyyy-MM-dd HH:mm:ss", "The pattern, as Java's SimpleDateFormat.", check=check_pattern
        ),
    ),
)
