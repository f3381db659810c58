"""Machines on a network that can be cut: network namespaces of this host, on a bridge.

What the machines have in common is the file system. This needs root and iproute2.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.runtime.processes.closing import Service

SOON_GIVEN_UP: Final[Mapping[str, str]] = {
    "spark.network.timeout": "20s",
    "spark.executor.heartbeatInterval": "4s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "20s",
    "spark.network.timeoutInterval": "5s",
}
"""Spark's settings by which it gives a silent machine up after twenty seconds; by default these are two minutes."""


WITH_OWN_PROCESS_IDS: Final = (
    shutil.which("unshare") or "unshare",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "--",
)
"""What goes before the command of a process that is to take others for those of another machine. Root only."""


class Network(Service):
    """Two machines, and this host's own address on the bridge to them. Each process may have one network.

    Example:
        >>> with Network() as network:                                          # doctest: +SKIP
        ...     with StandaloneCluster(folder, machine=network.command, network=network.network) as cluster:
        ...         with network.cut_off(network.machines[0]):
        ...             ...
    """

    def __init__(self) -> None:
        number = os.getpid() % 250
        self.network = f"10.91.{number}"
        """The first three parts of all addresses; this host's ends in `.1`."""
        self.machines = (f"{self.network}.2", f"{self.network}.3")
        self._bridge = f"storm-br{number}"

    def start(self) -> None:
        """Makes the machines.

        Raises:
            SetupError: this user or this system can't.
        """
        if os.geteuid() != 0 or shutil.which("ip") is None:
            raise SetupError("needs root and iproute2, for network namespaces")
        self.close()  # what a process with the same number left when it was killed
        try:
            self._make()
        except subprocess.CalledProcessError as error:
            raise SetupError(f"needs network namespaces: {error.stderr.decode().strip()}") from error

    def _make(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self.network}.1/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for host in self.machines:
            name, end = self._namespace(host), self._cable(host)
            _ip("netns", "add", name)
            _ip("link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", end, "master", self._bridge, "up")
            _ip("-n", name, "addr", "add", f"{host}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                _ip("-n", name, "link", "set", device, "up")

    def close(self) -> None:
        """Removes the machines; processes on them are left without a network."""
        if shutil.which("ip") is None:
            return
        for host in self.machines:
            _ip("netns", "del", self._namespace(host), check=False)
            _ip("link", "del", self._cable(host), check=False)
        _ip("link", "del", self._bridge, check=False)

    def command(self, host: str) -> tuple[str, ...]:
        """Returns what stands before a command to run it on the machine with this address."""
        return str(shutil.which("ip")), "netns", "exec", self._namespace(host)

    @contextlib.contextmanager
    def cut_off(self, host: str) -> Iterator[None]:
        """Unplugs a machine for as long as the block lasts: nobody is told, and what is sent gets lost."""
        _ip("link", "set", self._cable(host), "down")
        try:
            yield
        finally:
            _ip("link", "set", self._cable(host), "up")

    def _namespace(self, host: str) -> str:
        return f"{self._bridge}-{host.rpartition('.')[2]}"

    def _cable(self, host: str) -> str:
        return f"{self._bridge}v{host.rpartition('.')[2]}"


def why_no_network() -> str | None:
    """Returns the reason why there can be no `Network` here; None if there can."""
    try:
        with Network():
            return None
    except SetupError as error:
        return str(error)


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)
