"""A hidden file beside files that are written by number: which micro-batch was planned last, and how."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.sink import SinkContext, SinkTransaction
from storm_on_spark.api.text.wording import other_format
from storm_on_spark.runtime.storage.durable import write_file

_VERSION: Final = 1
_MOST_BYTES: Final = 1000
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]")


def open_marked(folder: Path, context: SinkContext) -> None:
    """Checks that a folder has nothing of later micro-batches than the checkpoint.

    Raises:
        SetupError: the mark can't be read.
        CheckpointError: the checkpoint is older than the folder.
    """
    context.check_history(_last(folder, context), f"the folder {folder}")


def mark_plan(folder: Path, context: SinkContext) -> None:
    """Marks a micro-batch before anything of it is written.

    Raises:
        SetupError: the mark can't be read.
        CheckpointError: the checkpoint is older than the folder.
        OSError: the mark can't be written.
    """
    if not context.is_written(_last(folder, context), f"the folder {folder}"):
        mark = {"version": _VERSION, **context.transaction._asdict()}
        write_file(_place(folder, context), json.dumps(mark).encode(), sync=True)


def _place(folder: Path, context: SinkContext) -> Path:
    # Spark and `glob` pass over files whose name begins with a dot.
    return folder / f".{_UNSAFE.sub('_', context.writer)}.plan"


def _last(folder: Path, context: SinkContext) -> SinkTransaction | None:
    place = _place(folder, context)
    try:
        with place.open("rb") as file:
            found = json.loads(file.read(_MOST_BYTES))
        if found["version"] != _VERSION:
            version = f"{found['version']!r:.20}"
            raise SetupError(
                other_format(str(place), version, _VERSION, "use the release that wrote it, or a new folder")
            )
        return SinkTransaction(int(found["micro_batch"]), int(found["plan"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SetupError(f"{place} can't be read: {type(error).__name__}: {error!s:.200}") from error
