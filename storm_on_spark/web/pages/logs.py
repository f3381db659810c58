"""Logs: a list of them, the text of one, and a search in all of them."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any, Final, get_args
from urllib.parse import urlencode

from storm_on_spark.api.errors import StormError
from storm_on_spark.cluster.records import LevelName
from storm_on_spark.web.model import LogFile
from storm_on_spark.web.pages.question import Question
from storm_on_spark.web.rendering import ROOT, path
from storm_on_spark.web.sites.levels import AS_BEFORE

_PART: Final = 64 << 10
"""Bytes of a log on a page."""
_SEARCHED: Final = 1 << 20
"""Bytes at the end of each log that are searched."""
_MOST_LOGS: Final = 50
_MOST_HITS: Final = 200
_MOST_CHARS: Final = 500
"""Of a line among what was found."""
_SEARCH_SECS: Final = 5.0


@dataclass(frozen=True)
class Hit:
    """A line with the text that was searched."""

    log: LogFile
    before: str
    text: str
    after: str
    link: str


def logs(question: Question) -> dict[str, Any]:
    """The logs of all topologies, or of one; of a log its end or the part that was asked for; or what was found."""
    topology = question.path.get("id", "")
    view = question.site.topology(topology) if topology else None
    files = sorted(question.site.logs(topology), key=lambda log: -log.changed_at)[:_MOST_LOGS]
    root = path("topology", topology, "logs") if topology else f"{ROOT}/logs"
    wanted, text = question.query.get("log", ""), question.query.get("search", "")[:200]
    if not wanted and len(files) == 1 and not text:
        wanted = files[0].id
    found: list[Hit] = []
    missed: list[str] = []
    part = None
    if text:
        found, missed = search(question, files, text, root)
    elif wanted:
        start = question.query.get("start", "")
        first = int(start) if start.isdecimal() and len(start) < 16 else -_PART
        part = question.site.read_log(wanted, first, _PART)
    return {
        "view": view,
        "root": root,
        "levels": question.site.log_levels(topology) if topology else [],
        "level_names": [AS_BEFORE, *reversed(get_args(LevelName))],
        "files": files,
        "wanted": wanted,
        "title": next((file.title for file in files if file.id == wanted), wanted),
        "text": text,
        "hits": found,
        "missed": missed,
        "part": part,
        "follows": part is not None and part.start + _PART >= part.size and not question.query.get("start"),
        "earlier": "" if part is None or not part.start else _link(root, wanted, max(0, part.start - _PART)),
        "later": "" if part is None or part.start + _PART >= part.size else _link(root, wanted, part.start + _PART),
        "end": _link(root, wanted),
    }


def search(question: Question, files: list[LogFile], text: str, root: str) -> tuple[list[Hit], list[str]]:
    """Returns the lines with a text, in capitals or not, and what could not be searched."""
    found: list[Hit] = []
    missed: list[str] = []
    until = time.monotonic() + _SEARCH_SECS
    # `lower()` would not do: some texts have another length then, and what was found would be marked elsewhere.
    wanted = re.compile(re.escape(text), re.IGNORECASE)
    for at, log in enumerate(files):
        if time.monotonic() > until or len(found) >= _MOST_HITS:
            missed.append(f"{len(files) - at} more logs")
            break
        try:
            part = question.site.read_log(log.id, -_SEARCHED, _SEARCHED)
        except StormError as error:
            missed.append(f"{log.id}: {error}")
            continue
        place = part.start
        for line in part.text.split("\n"):
            match = wanted.search(line) if len(found) < _MOST_HITS else None
            if match:
                spot, end = match.span()
                begin = max(0, spot - _MOST_CHARS // 2)
                found.append(
                    Hit(
                        log,
                        line[begin:spot],
                        line[spot:end],
                        line[end : begin + _MOST_CHARS],
                        _link(root, log.id, max(0, place - _PART // 4)),
                    )
                )
            place += len(line.encode("utf-8", "surrogatepass")) + 1
    return found, missed


def _link(root: str, log: str, start: int | None = None) -> str:
    return f"{root}?{urlencode({'log': log} if start is None else {'log': log, 'start': start})}"
