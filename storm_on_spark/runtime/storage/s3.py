"""S3, and servers that speak its protocol, by Arrow's client; set up from the settings of Hadoop's `s3a`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlparse

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.storage.arrow import ArrowStorage
from storm_on_spark.runtime.storage.interface import Storage

_PREFIX = "fs.s3a."
_AMAZONS = ("", "s3.amazonaws.com", "central")
"""Endpoints of Amazon itself, in any region."""
_CONNECT_SECS = 10.0
_REQUEST_SECS = 30.0
_ATTEMPTS = 6

Lookup = Callable[[str], str | None]
"""Returns a setting of Hadoop; None or an empty string if it has no value."""


@dataclass(frozen=True)
class S3Place:
    """A folder of a bucket."""

    bucket: str
    folder: str
    """Without `/` at its ends."""
    endpoint: str | None = None
    """Host and port; None for Amazon's."""
    encrypted: bool = True
    """Whether it is reached by HTTPS."""
    region: str | None = None
    path_style: bool = False
    """Whether the bucket's name is in the path, not in the host's name."""
    anonymous: bool = False
    access_key: str | None = field(default=None, repr=False)
    """None for what Amazon's client finds on the machine: environment, profile, role."""
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    role: str | None = None
    """The role to take on."""

    def open(self) -> Storage:
        """Returns the store; nothing is asked of the server yet."""
        from pyarrow import fs

        options: dict[str, Any] = {
            "scheme": "https" if self.encrypted else "http",
            "endpoint_override": self.endpoint,
            "force_virtual_addressing": self.endpoint is not None and not self.path_style,
            "region": self.region,
            "connect_timeout": _CONNECT_SECS,
            "request_timeout": _REQUEST_SECS,
            "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
            # Otherwise a small object takes three requests instead of one.
            "allow_delayed_open": True,
        }
        if self.anonymous:
            options["anonymous"] = True
        elif self.access_key is not None:
            options["access_key"], options["secret_key"] = self.access_key, self.secret_key
            options["session_token"] = self.session_token
        elif self.role is not None:
            options["role_arn"] = self.role
        system = fs.S3FileSystem(**{key: value for key, value in options.items() if value is not None})
        folder = f"{self.bucket}/{self.folder}".rstrip("/")
        return ArrowStorage(system, folder, f"s3a://{folder}")


def s3_place(url: str, setting: Lookup) -> S3Place:
    """Returns the place that an `s3a` URL names, as Hadoop would reach it.

    Args:
        url: such as `s3a://bucket/folder`.
        setting: looks a setting of Hadoop up; settings of one bucket take precedence.

    Raises:
        SetupError: the URL names no bucket, or a setting is not valid.

    Example:
        >>> settings = {
        ...     "fs.s3a.endpoint": "http://127.0.0.1:9000",
        ...     "fs.s3a.path.style.access": "true",
        ...     "fs.s3a.access.key": "user",
        ...     "fs.s3a.secret.key": "secret",
        ... }
        >>> place = s3_place("s3a://bucket/checkpoints/count", settings.get)
        >>> place.endpoint, place.encrypted, place.path_style
        ('127.0.0.1:9000', False, True)
        >>> "secret" in repr(place)
        False
    """
    parsed = urlparse(url)
    bucket, folder = parsed.netloc, unquote(parsed.path).strip("/")
    if not bucket or not folder or "@" in bucket:
        raise SetupError(f"{_without_password(url)!r} must name a bucket and a folder in it: s3a://bucket/folder")

    def get(key: str) -> str | None:
        return setting(f"{_PREFIX}bucket.{bucket}.{key}") or setting(_PREFIX + key) or None

    endpoint, encrypted = _endpoint(get("endpoint"), _truth(get("connection.ssl.enabled"), default=True))
    access, secret = get("access.key"), get("secret.key")
    if (access is None) != (secret is None):
        raise SetupError(f"{url}: of {_PREFIX}access.key and {_PREFIX}secret.key only one is set; set both or none")
    return S3Place(
        bucket=bucket,
        folder=folder,
        endpoint=endpoint,
        encrypted=encrypted,
        region=get("endpoint.region"),
        path_style=_truth(get("path.style.access"), default=False),
        anonymous="AnonymousAWSCredentialsProvider" in (get("aws.credentials.provider") or ""),
        access_key=access,
        secret_key=secret,
        session_token=get("session.token"),
        role=get("assumed.role.arn"),
    )


def _endpoint(text: str | None, encrypted: bool) -> tuple[str | None, bool]:
    """Returns host and port, None for Amazon's, and whether it is reached by HTTPS."""
    text = (text or "").strip().rstrip("/")
    if "://" in text:
        scheme, _, text = text.partition("://")
        encrypted = scheme == "https"
    return (None if text in _AMAZONS else text), encrypted


def _truth(text: str | None, *, default: bool) -> bool:
    return default if text is None else text.strip().lower() == "true"


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
