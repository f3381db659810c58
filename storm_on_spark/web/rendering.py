"""Templates: how values look for people, and the part of a page that changes while it is looked at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, unquote

import jinja2
from markupsafe import Markup

from storm_on_spark.api.text.moments import occurred
from storm_on_spark.api.text.printable import printable
from storm_on_spark.cluster.rest.pages.durations import pretty
from storm_on_spark.runtime.reports.observer import rate_text

ROOT: Final = "/ui"
STATIC: Final = {
    "ui.css": "text/css; charset=utf-8",
    "ui.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""Files that belong to the pages, and their types."""


def path(*parts: str) -> str:
    """Returns the path of a page, from which `part_of` gets its parts back.

    Servers take an encoded `/` for a plain one, and browsers an encoded `..` for a step: these are encoded twice.

    Example:
        >>> path("topology", "a b", "component", "a/b <c>")
        '/ui/topology/a%20b/component/a%252Fb%20%3Cc%3E'
        >>> [part_of(unquote(path(name)[4:])) for name in ("..", "a/b", "100%", "%2F")]
        ['..', 'a/b', '100%', '%2F']
    """
    return "/".join([ROOT, *(quote(_without_slash(part), safe="") for part in parts)])


def _without_slash(part: str) -> str:
    return part.replace("%", "%25").replace("/", "%2F") if part.strip(".") else part.replace(".", "%2E")


def part_of(decoded: str) -> str:
    """Returns a part of a path that a server has decoded."""
    return unquote(decoded)


def number(value: float | None) -> str:
    """Returns a number with thousands separators, and with digits as are of use.

    Example:
        >>> number(1234567), number(0), number(0.1234), number(None), number(12.0)
        ('1,234,567', '0', '0.12', '-', '12')
    """
    if value is None:
        return "-"
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


def moment(seconds: float) -> str:
    """Returns a time of the day here, with its date."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"


def size(count: float) -> str:
    """Returns bytes in a unit that fits.

    Example:
        >>> size(12), size(2048), size(5 << 20)
        ('12 B', '2.0 KB', '5.0 MB')
    """
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024:
            return f"{count:,.0f} B" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TB"


def static_file(name: str) -> bytes:
    """Returns a file that belongs to the pages."""
    return (files("storm_on_spark.web") / "static" / name).read_bytes()


@cache
def static_path(name: str) -> str:
    """Returns the path of such a file: with its checksum, so that browsers may keep it."""
    return f"{ROOT}/static/{name}?{hashlib.sha256(static_file(name)).hexdigest()[:12]}"


def _shown(value: Any) -> Any:
    """Escapes what would change the direction of text, or hide some, before HTML is escaped."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value)


class Renderer:
    """The templates."""

    def __init__(self) -> None:
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("storm_on_spark.web"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=_shown,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(path=path, static=static_path)
        self._templates.filters.update(
            number=number,
            rate=rate_text,
            moment=moment,
            duration=pretty,
            size=size,
            occurred=lambda error: occurred(error.count, error.first_time, error.time),
            json=lambda value: json.dumps(value, ensure_ascii=False, default=str),
        )
        # A global, as the part that changes is rendered without the page around it.
        self._templates.globals["shared"] = self._templates.get_template("shared.html").module
        self._templates.globals["jobbing"] = self._templates.get_template("job_parts.html").module
        self._templates.globals["flow"] = self._templates.get_template("stream_parts.html").module

    def page(self, template: str, values: Mapping[str, Any]) -> str:
        """Returns a whole page."""
        return self._templates.get_template(template).render(values)

    def live(self, template: str, values: Mapping[str, Any]) -> Markup:
        """Returns the part of it that changes; a page that is given it as `live` doesn't make it again."""
        found = self._templates.get_template(template)
        block = found.blocks.get("live")
        return Markup("") if block is None else Markup("").join(map(Markup, block(found.new_context(dict(values)))))
