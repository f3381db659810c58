"""A request that matches its schema, for the handlers of resources."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from storm_on_spark.cluster.errors import NotFoundError, RecordError
from storm_on_spark.xd.admin.rest import schemas

_NAME: Final = re.compile(rf"[A-Za-z_][A-Za-z0-9_-]{{0,{schemas.MAXIMUM_NAME - 1}}}")
_NUMBER: Final = re.compile("[0-9]{1,9}")


@dataclass(frozen=True)
class Call:
    """A request that matches its schema."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Any

    def page(self, entries: Iterable[Any]) -> schemas.PageOf[Any]:
        """Returns the page of a list that was asked for."""
        number, size = self._number("page", 0), self._number("size", schemas.DEFAULT_PAGE_SIZE)
        try:
            return schemas.page_of(tuple(entries), number, size)
        except ValueError as error:
            raise RecordError(str(error)) from error

    def name(self, kind: str) -> str:
        """Returns the name in the path.

        Raises:
            NotFoundError: it is not a valid name.
        """
        name = self.path["name"]
        if not _NAME.fullmatch(name):
            raise NotFoundError(f"There is no {kind} named {name!r:.100}")
        return name

    def number(self, name: str, what: str) -> int:
        """Returns a number in the path.

        Raises:
            NotFoundError: it is not a number.
        """
        text = self.path[name]
        if not _NUMBER.fullmatch(text):
            raise NotFoundError(f"There is no {what} {text!r:.100}")
        return int(text)

    def _number(self, name: str, default: int) -> int:
        text = self.query.get(name)
        if text is None:
            return default
        if not _NUMBER.fullmatch(text):
            raise RecordError(f"Expected a number as {name}, got {text!r:.100}")
        return int(text)


Handler = Callable[[Call], Any]
