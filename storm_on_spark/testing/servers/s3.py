"""An S3 server for tests, in a process of its own: moto's, which keeps objects in memory.

It needs the package `moto[server]`.
"""

from __future__ import annotations

import selectors
import signal
import subprocess
import sys
import time
import uuid
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from storm_on_spark.api.errors import SetupError

_READY_SECS: Final = 60.0
_HOST: Final = "127.0.0.1"


class S3MissingError(SetupError):
    """The package is missing: the S3 server can't be started."""


class S3Server:
    """S3 on this host, on a free port, with an empty bucket. Every key opens it.

    Args:
        log: file for what it prints; nothing is kept for None.

    Example:
        >>> with S3Server() as server:                                          # doctest: +SKIP
        ...     server.uri, server.settings["fs.s3a.endpoint"]
        ('s3a://bucket', 'http://127.0.0.1:40123')
    """

    bucket: Final = "bucket"

    def __init__(self, log: Path | None = None) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.secret = uuid.uuid4().hex
        """The secret key in `settings`."""
        self.endpoint = ""
        """Where it is, once it has been started."""

    @property
    def uri(self) -> str:
        """The bucket's URL, as Hadoop writes it."""
        return f"s3a://{self.bucket}"

    @property
    def settings(self) -> dict[str, str]:
        """Hadoop's settings with which it is reached."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": "test",
            "fs.s3a.secret.key": self.secret,
            # Hadoop's other client, for uploads of whole files, waits for ever though this server has answered.
            "fs.s3a.optimized.copy.from.local.enabled": "false",
        }

    @property
    def conf(self) -> dict[str, str]:
        """The same as keys of a topology's or a session's configuration."""
        return {f"spark.hadoop.{key}": value for key, value in self.settings.items()}

    def start(self) -> None:
        """Returns when it is up.

        Raises:
            S3MissingError: `moto[server]` is not installed.
            SetupError: it does not start.
        """
        if find_spec("moto") is None or find_spec("flask") is None:
            raise S3MissingError("there is no S3 server: install moto[server]")
        output = subprocess.DEVNULL if self._log is None else self._log.open("ab")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output
            )
        finally:
            if not isinstance(output, int):
                output.close()
        try:
            self.endpoint = f"http://{_HOST}:{self._port()}"
        except BaseException:
            self.close()
            raise

    def pause(self) -> None:
        """Has it hang."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Has it go on."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Ends it; all objects are gone."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()

    def __enter__(self) -> S3Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _signal(self, number: int) -> None:
        assert self._process is not None, "start() comes first"
        self._process.send_signal(number)

    def _port(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + _READY_SECS
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            ready = selector.select(max(0.0, deadline - time.monotonic()))
        line = self._process.stdout.readline(64) if ready else b""
        if not line.strip().isdigit():
            raise SetupError("the S3 server does not start" + (f"; see {self._log}" if self._log else ""))
        return int(line)


def main() -> None:
    """Runs the server until standard input ends: with the one who started it, however that ends."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address=_HOST, port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=f"http://{_HOST}:{port}", **keys).create_bucket(Bucket=S3Server.bucket)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
