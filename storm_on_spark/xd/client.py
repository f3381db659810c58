"""A client of an admin: asks for the resources of its REST interface by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from storm_on_spark.api.errors import ConfigError
from storm_on_spark.cluster.client.answers import error_of
from storm_on_spark.cluster.client.paths import own_name, path_part
from storm_on_spark.cluster.errors import ClusterError, UnavailableError
from storm_on_spark.cluster.http.guard import BEHALF
from storm_on_spark.cluster.security.settings import SecuritySettings
from storm_on_spark.cluster.security.tls import Tls
from storm_on_spark.cluster.security.user_token import auth_of_client
from storm_on_spark.runtime.processes.closing import Closing
from storm_on_spark.xd.admin.rest import schemas
from storm_on_spark.xd.admin.rest.resources import DEFAULT_PORT, RESOURCES

DEFAULT_URL: Final = f"http://localhost:{DEFAULT_PORT}"
_RESOURCES: Final = {each.name: each for each in RESOURCES}
_TIMEOUT: Final = httpx.Timeout(120.0, connect=5.0)
"""A deployment is answered once the leader has accepted it, which may take a while."""
_HOST: Final = re.compile(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+")


class AdminClient(Closing):
    """A client of one admin.

    Args:
        url: of the admin, such as `http://localhost:9393`; https with `storm.tls.ca.file`.
        conf: names the files with the token (`nimbus.auth.token.file`) and with the CA, if there are such files. An
            admin on loopback gets the user's own token if none is named.

    Raises:
        ConfigError: the URL is invalid.
        SetupError: a file can't be used.

    Example:
        >>> with AdminClient() as client:                                            # doctest: +SKIP
        ...     client.ask("create_stream", schemas.CreateDefinition(name="ticktock", definition="time | log"))
        DefinitionView(name='ticktock', definition='time | log', status='undeployed')
    """

    def __init__(self, url: str = DEFAULT_URL, conf: Mapping[str, Any] | None = None) -> None:
        self.url = checked_url(url)
        self.conf = dict(conf or {})
        settings = SecuritySettings.of(self.conf)
        self._http = httpx.Client(
            base_url=self.url,
            auth=auth_of_client(settings, [urlsplit(self.url).netloc]),
            verify=Tls.of_client(settings).verify,
            timeout=_TIMEOUT,
            trust_env=False,
            follow_redirects=False,
            # The user, for the list of changes.
            headers={BEHALF: quote(own_name())},
        )

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def ask(self, name: str, /, body: Any = None, query: Mapping[str, Any] | None = None, **path: str) -> Any:
        """Requests a resource. Returns an object of its type, or None if it has no body.

        Args:
            name: of the resource.
            body: of the resource's request type.
            query: parameters of the query.
            path: parameters of the path.

        Raises:
            UnavailableError: the admin doesn't answer, or has no leader or ZooKeeper.
            ClusterError: the admin refuses; see `storm_on_spark.xd.admin.core` for the kinds.
        """
        resource = _RESOURCES[name]
        where = resource.path.format(**{key: path_part(value) for key, value in path.items()})
        response = self._request(
            resource.method,
            where,
            content=None if body is None else msgspec.json.encode(body),
            params=None if query is None else dict(query),
            headers={} if body is None else {"Content-Type": "application/json"},
        )
        return None if resource.gives is None else self._decoded(name, response, resource.gives)

    def ui_link(self) -> str:
        """Returns a link that works once and logs a browser in to the pages of the admin.

        Raises:
            ClusterError: the admin refuses, or has no pages.
        """
        found = self._decoded("the pages", self._request("POST", "/ui-login"), dict[str, str])
        return f"{self.url}{found.get('path', '')}"

    def _request(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **more)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            # The message says enough; where in the library the error was raised does not help.
            raise UnavailableError(f"no admin answers at {self.url}: {error}") from None
        if not response.is_success:
            raise error_of(response, self.url, "The admin at")
        return response

    def _decoded(self, name: str, response: httpx.Response, kind: Any) -> Any:
        try:
            return msgspec.json.decode(response.content, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ClusterError(f"{self.url}: the answer to {name} is not that of an admin: {error}") from error

    def every(self, name: str, /, query: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """Yields the entries of all pages of a list."""
        number = 0
        while True:
            page = self.ask(name, query={**(query or {}), "page": number, "size": schemas.MAXIMUM_PAGE_SIZE})
            yield from page.content
            number += 1
            if number >= page.page.total_pages:
                return


def checked_url(url: str) -> str:
    """Returns the URL of an admin without a slash at its end.

    Raises:
        ConfigError: it is not a URL of an admin.

    Example:
        >>> checked_url("http://localhost:9393/")
        'http://localhost:9393'
    """
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and _HOST.fullmatch(parts.hostname or "") and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
        raise ConfigError(f"Expected the URL of an admin such as {DEFAULT_URL}, got {url!r:.100}")
    return url.rstrip("/")
