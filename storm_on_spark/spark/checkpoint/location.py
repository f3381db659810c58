"""Where a checkpoint is: a directory that is mounted everywhere, or a URL of a store."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from storm_on_spark.api.errors import CheckpointError, SetupError
from storm_on_spark.runtime.storage import LocalPlace, StoragePlace
from storm_on_spark.runtime.storage.hdfs import hdfs_place
from storm_on_spark.runtime.storage.s3 import s3_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECRET = re.compile(r"//[^/@]*@")
_AMAZONS_OLD = ("s3", "s3n")


@dataclass(frozen=True)
class Location:
    """A checkpoint's place.

    Example:
        >>> location_of("file:/data/my%20count").path
        PosixPath('/data/my count')
        >>> location_of("s3a://bucket/count/").url
        's3a://bucket/count'
    """

    url: str
    """As Spark takes it: `file:` and a path that is not quoted, or the URL without its last `/`."""
    path: Path | None
    """Of a directory; None for a store."""

    @property
    def scheme(self) -> str:
        """What comes before the colon."""
        return self.url.partition(":")[0]

    def __str__(self) -> str:
        return str(self.path) if self.path is not None else self.url


def location_of(path: str | os.PathLike[str]) -> Location:
    """Returns the place that a directory, a `file:` URI of one, or a URL names.

    Raises:
        CheckpointError: the URL makes no sense.
    """
    text = os.fspath(path)
    parsed = urlparse(text)
    if parsed.scheme in ("", "file"):
        local = Path(unquote(parsed.path) if parsed.scheme else text).absolute()
        # No URI: Hadoop takes a path as it is and would not decode a %20.
        return Location(f"file:{local}", local)
    shown = _SECRET.sub("//", text)
    if parsed.scheme in _AMAZONS_OLD:
        raise CheckpointError(f"checkpoint {shown!r}: write s3a:// instead of {parsed.scheme}://")
    if "@" in parsed.netloc and parsed.scheme not in ("abfs", "abfss"):
        raise CheckpointError(
            f"checkpoint {shown!r} has a user or a password in its URL; use Hadoop's settings for that"
        )
    if not parsed.path.strip("/") or parsed.query or parsed.fragment or set(parsed.path.split("/")) & {".", ".."}:
        raise CheckpointError(f"checkpoint {shown!r} must be a folder: SCHEME://STORE/FOLDER")
    if not re.fullmatch(r"[A-Za-z0-9/._=+-]+", parsed.path):
        raise CheckpointError(
            f"checkpoint {shown!r} has other characters in its path than ASCII letters, digits and ._=+-/"
        )
    return Location(text.rstrip("/"), None)


def place_of(location: Location, spark: SparkSession | None) -> StoragePlace:
    """Returns the place at which our own processes reach a checkpoint.

    Args:
        location: where it is.
        spark: its Hadoop settings say how a store is reached; not needed for a directory.

    Raises:
        CheckpointError: the store can't be reached like this.
    """
    if location.path is not None:
        return LocalPlace(str(location.path))
    assert spark is not None, "how a store is reached is known to a session only"
    try:
        if location.scheme == "s3a":
            return s3_place(location.url, hadoop_lookup(spark))
        if location.scheme == "hdfs":
            return hdfs_place(location.url, hadoop_lookup(spark), _hadoop_user(spark))
    except SetupError as error:
        raise CheckpointError(f"checkpoint {location}: {error}") from error
    raise CheckpointError(
        f"checkpoint {location}: only s3a://, hdfs:// and directories can be used; mount {location.scheme}:// as a "
        "directory on all machines"
    )


def hadoop_lookup(spark: SparkSession) -> Callable[[str], str | None]:
    """Returns a function that looks Hadoop's settings up; secrets also in its credential stores."""
    jsc: Any = spark.sparkContext._jsc  # noqa: SLF001 # PySpark has no public way to Hadoop's settings
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    configuration = jsc.hadoopConfiguration()

    def lookup(key: str) -> str | None:
        if key.endswith((".key", ".token")):
            secret = configuration.getPassword(key)
            return None if secret is None else str(jvm.java.lang.String(secret)).strip() or None
        value = configuration.getTrimmed(key)
        return None if value is None else str(value) or None

    return lookup


def _hadoop_user(spark: SparkSession) -> str:
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 # PySpark has no public way to it
    return str(jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser().getShortUserName())


def local_directory(path: str | os.PathLike[str]) -> Path:
    """Returns the directory of a checkpoint.

    Args:
        path: the directory, or a `file:` URI of it.

    Raises:
        CheckpointError: it is a URI of something else.
    """
    location = location_of(path)
    if location.path is None:
        raise CheckpointError(
            f"checkpoint {location} is not a directory of a mounted file system; remove it with the store's own tool"
        )
    return location.path
