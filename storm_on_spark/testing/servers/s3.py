"""An S3 server for tests, in a separate process: moto's, which keeps objects in memory.

It needs the package `moto[server]`.
"""

from __future__ import annotations

import signal
import sys
import uuid
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.server import HOST, Server


class S3MissingError(SetupError):
    """The package is missing: the S3 server can't be started."""


class S3Server(Server):
    """S3 on this host, on a free port, with an empty bucket. It accepts every key. Its objects are lost when it ends.

    Args:
        folder: for its log; None for a temporary one.

    Raises:
        S3MissingError: at the start, if `moto[server]` is not installed.

    Example:
        >>> with S3Server() as server:                                          # doctest: +SKIP
        ...     server.uri, server.settings["fs.s3a.endpoint"]
        ('s3a://bucket', 'http://127.0.0.1:40123')
    """

    kind = "s3"
    title = "S3 server"
    closed_by = signal.SIGKILL
    bucket: Final = "bucket"

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(folder)
        self.secret = uuid.uuid4().hex
        """The secret key in `settings`."""

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://{HOST}:{self.port}"

    @property
    def uri(self) -> str:
        """The bucket's URL, as Hadoop writes it."""
        return f"s3a://{self.bucket}"

    @property
    def settings(self) -> dict[str, str]:
        """Hadoop's settings for a connection."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": "test",
            "fs.s3a.secret.key": self.secret,
            # Hadoop's other client, for uploads of whole files, waits for ever even though this server has answered.
            "fs.s3a.optimized.copy.from.local.enabled": "false",
        }

    @property
    def conf(self) -> dict[str, str]:
        """The same as keys of a topology's or a session's configuration."""
        return {f"spark.hadoop.{key}": value for key, value in self.settings.items()}

    def _commands(self) -> Mapping[str, Sequence[str]]:
        if find_spec("moto") is None or find_spec("flask") is None:
            raise S3MissingError("there is no S3 server: install moto[server]")
        self._up.unlink(missing_ok=True)
        return {self.kind: [sys.executable, "-m", __name__, str(self.port), str(self._up)]}

    @property
    def _up(self) -> Path:
        return self.data_dir / "up"

    def _answers(self) -> bool:
        return self._up.exists()


def main(port: int, up: Path) -> None:
    """Runs the server until it is killed; creates the file `up` once the bucket exists."""
    import boto3
    from moto.server import ThreadedMotoServer

    ThreadedMotoServer(ip_address=HOST, port=port, verbose=False).start()
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=f"http://{HOST}:{port}", **keys).create_bucket(Bucket=S3Server.bucket)
    up.touch()
    signal.pause()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
