"""Which cluster a command asks: the named one, or the running `storm-spark dev`, or the one on this host."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.config import Config
from storm_on_spark.api.errors import ConfigError
from storm_on_spark.cli.client.dev_record import find

if TYPE_CHECKING:
    from storm_on_spark.cluster.client.nimbus_client import NimbusClient

_CLIENTS: Final = (
    "nimbus.seeds",
    "nimbus.thrift.port",
    "nimbus.auth.token.file",
    "storm.tls.ca.file",
    "storm.nimbus.retry.",
)
_CLUSTERS: Final = ("java.", "nimbus.", "pacemaker.", "storm.", "supervisor.", "ui.")
_CONNECT_SECS: Final = 2.0
_LOOKS: Final = 4
_PAUSE_SECS: Final = 0.4


@dataclass(frozen=True)
class ChosenCluster:
    """The cluster that a command asks."""

    conf: dict[str, Any]
    """The configuration of its client."""
    hint: str
    """What to do if no Nimbus answers."""


def find_cluster(conf: Mapping[str, Any], nimbuses: Sequence[str], token_file: Path | None) -> ChosenCluster:
    """Returns the cluster to ask.

    Args:
        conf: the command line's configuration; only keys of a client count.
        nimbuses: `host:port`, from `--nimbus`.
        token_file: the file given by `--token-file`.
    """
    chosen = {key: value for key, value in conf.items() if key.startswith(_CLIENTS)}
    for address in nimbuses:
        _check_address(address)
    if nimbuses:
        chosen[Config.NIMBUS_SEEDS] = list(nimbuses)
    if token_file is not None:
        chosen[Config.NIMBUS_AUTH_TOKEN_FILE] = str(token_file)
    if Config.NIMBUS_SEEDS in chosen or Config.NIMBUS_THRIFT_PORT in chosen:
        return ChosenCluster(chosen, "Is a Nimbus running there?")
    record, note = find()
    if record is None:
        hint = "Start a cluster on this host with `storm-spark dev`, or name one with --nimbus HOST:PORT."
        return ChosenCluster(chosen, f"{note} {hint}" if note else hint)
    chosen.setdefault(Config.NIMBUS_AUTH_TOKEN_FILE, record.token_file)
    return ChosenCluster(
        {**chosen, Config.NIMBUS_SEEDS: list(record.seeds)},
        f"These are the addresses of the `storm-spark dev` with process id {record.pid}, which may just be ending.",
    )


def _check_address(address: str) -> None:
    """Checks a `HOST`, `HOST:PORT` or `[IPV6]:PORT` of `--nimbus`.

    Raises:
        ConfigError: it has another form.
    """
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, "1"
    good_host = bool(re.fullmatch(r"[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.%a-z0-9]+\]", host))
    if not good_host or not port.isascii() or not port.isdecimal() or not 1 <= int(port[:6]) <= 65535:
        raise ConfigError(f"--nimbus takes HOST:PORT with a port from 1 to 65535, not {address[:80]!r}")


def topologys(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the topology's part of a configuration, because one file may configure both it and the cluster.

    >>> topologys({"nimbus.seeds": ["a"], "topology.workers": 2, "my.key": 1, "spark.ui.enabled": True})
    {'topology.workers': 2, 'my.key': 1, 'spark.ui.enabled': True}
    """
    return {key: value for key, value in conf.items() if not key.startswith(_CLUSTERS)}


def connect(where: ChosenCluster, sleep: Callable[[float], object] = time.sleep) -> NimbusClient:
    """Returns a client of the cluster.

    A client retries for a minute while leadership changes. If no address answers at all, the error comes at once.

    Raises:
        UnavailableError: no Nimbus answers.
    """
    from storm_on_spark.cluster.client.nimbus_client import NimbusClient
    from storm_on_spark.cluster.errors import UnavailableError

    client = NimbusClient(where.conf)
    for look in range(_LOOKS):
        if look:
            sleep(_PAUSE_SECS)
        if any(_listens(seed) for seed in client.seeds):
            return client
    client.close()
    raise UnavailableError(f"no Nimbus answers at {', '.join(client.seeds)}. {where.hint}")


def _listens(seed: str) -> bool:
    host, _, port = seed.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECS).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True
