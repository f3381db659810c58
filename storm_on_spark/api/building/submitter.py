"""Submitting a topology from a program, as programs for Storm do: `StormSubmitter` and `ConfigurableTopology`."""

from __future__ import annotations

import contextlib
import importlib
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol

from storm_on_spark.api.building.builder import TopologyBuilder
from storm_on_spark.api.config import Config
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import ConfigError, InvalidTopologyError
from storm_on_spark.api.text.wording import kind_of, name_fault
from storm_on_spark.api.topology import Topology

_CLIENT: Final = "storm_on_spark.cli.client.submitter"
"""The module that submits. It is imported on submission only, because it needs Spark and the cluster's libraries."""
_CONF_FILES: Final = "storm_on_spark.launch.conf_text"
"""The module that reads YAML; imported only when a file is given."""


@dataclass(frozen=True)
class _NameSettings(Settings):
    name: Annotated[str | None, Config.TOPOLOGY_NAME]


class ProgressListener(Protocol):
    """Receives the progress of an upload, under Storm's names; any object with these methods."""

    def on_start(self, src_file: str, target_file: str, total_bytes: int) -> None:
        """Called when the upload of a file begins."""
        ...

    def on_progress(self, src_file: str, target_file: str, bytes_uploaded: int, total_bytes: int) -> None:
        """Called when a part of the file has been uploaded."""
        ...

    def on_completed(self, src_file: str, target_file: str, total_bytes: int) -> None:
        """Called when the whole file has been uploaded."""
        ...


@dataclass(frozen=True)
class SubmitOptions:
    """How a topology starts.

    Example:
        >>> SubmitOptions("INACTIVE").initial_status
        'INACTIVE'

    Raises:
        ConfigError: the status is neither `ACTIVE` nor `INACTIVE`.
    """

    initial_status: Literal["ACTIVE", "INACTIVE"] = "ACTIVE"
    """Whether spouts emit from the start, or when the topology is activated."""

    def __post_init__(self) -> None:
        if self.initial_status not in ("ACTIVE", "INACTIVE"):
            raise ConfigError(f"initial_status is ACTIVE or INACTIVE, not {self.initial_status!r:.40}")


@dataclass(frozen=True)
class Submitted:
    """A topology that a program submitted."""

    name: str
    conf: dict[str, Any]
    topology: Topology
    options: SubmitOptions


_taken: list[list[Submitted]] = []
#: The lists in which `taking` collects submitted topologies, the innermost last.


@contextlib.contextmanager
def taking() -> Iterator[list[Submitted]]:
    """Collects topologies that are submitted inside the `with` block instead of sending them to a cluster.

    `storm-spark run FILE` and other commands run a program this way to find its topology.

    Example:
        >>> from storm_on_spark.testing import ListSpout
        >>> builder = TopologyBuilder()
        >>> _ = builder.set_spout("lines", ListSpout([]))
        >>> with taking() as found:
        ...     StormSubmitter.submit_topology("demo", {}, builder.create_topology())
        >>> found[0].name
        'demo'
    """
    found: list[Submitted] = []
    _taken.append(found)
    try:
        yield found
    finally:
        _taken.remove(found)


def _check(name: object, conf: object, topology: object) -> None:
    if not isinstance(name, str) or name_fault(name):
        raise InvalidTopologyError(f"the name of a topology is a text without control characters, not {name!r:.80}")
    if not isinstance(topology, Topology):
        hint = "; give what its create_topology() returns" if isinstance(topology, TopologyBuilder) else ""
        raise InvalidTopologyError(f"topology {name!r:.80} is {kind_of(topology)}, not a Topology{hint}")
    if not isinstance(conf, Mapping):
        raise ConfigError(f"the configuration is a mapping from keys to values, not {kind_of(conf)}")


class StormSubmitter:
    """Submits topologies to a cluster from a program; `storm-spark submit` does the same on the command line.

    The topology is sent as it is, with the modules that its components and the program's script import from their own
    folders. The configuration names the cluster (`nimbus.seeds`); the default is the `storm-spark dev` on this host.
    """

    @staticmethod
    def submit_topology(
        name: str,
        topo_conf: Mapping[str, Any],
        topology: Topology,
        opts: SubmitOptions | None = None,
        progress_listener: ProgressListener | None = None,
    ) -> None:
        """Submits a topology; returns when the cluster has accepted it.

        Args:
            name: the topology's name.
            topo_conf: its configuration, including the cluster's addresses.
            topology: the result of `TopologyBuilder.create_topology`.
            opts: how it starts; None for active.
            progress_listener: receives the progress of the upload.

        Raises:
            AlreadyAliveError: a topology with that name exists; Storm's `AlreadyAliveException`.
            InvalidTopologyError: the topology is invalid; Storm's `InvalidTopologyException`.
            ConfigError: a key or value of the configuration is invalid.
            StormError: no Nimbus answers.

        Example:
            >>> StormSubmitter.submit_topology("words", {"nimbus.seeds": ["nimbus-1"]}, topology)    # doctest: +SKIP
        """
        _check(name, topo_conf, topology)
        submitted = Submitted(name, dict(topo_conf), topology, opts or SubmitOptions())
        if _taken:
            _taken[-1].append(submitted)
            return
        importlib.import_module(_CLIENT).submit(submitted, progress_listener)

    @staticmethod
    def submit_topology_with_progress_bar(
        name: str, topo_conf: Mapping[str, Any], topology: Topology, opts: SubmitOptions | None = None
    ) -> None:
        """Like `submit_topology`, but shows the progress of the upload on standard error."""
        bar = None if _taken else importlib.import_module(_CLIENT).ProgressBar()
        StormSubmitter.submit_topology(name, topo_conf, topology, opts, bar)


class ConfigurableTopology(ABC):
    """A program that makes a topology and is configured by files.

    `storm-spark run FILE`, `submit`, `explain` and other commands accept a file with such a class as it is. Run as a
    script, the program submits the topology: `python words.py -conf words.yaml`.

    Example:
        >>> from storm_on_spark.testing import ListSpout
        >>> class Words(ConfigurableTopology):
        ...     def run(self, args):
        ...         builder = TopologyBuilder()
        ...         builder.set_spout("lines", ListSpout([]), self.conf.get("lines.tasks", 1))
        ...         return self.submit("words", self.conf, builder)
        >>> with taking() as found:
        ...     ConfigurableTopology.start(Words(), [])
        0
        >>> found[0].name
        'words'
    """

    def __init__(self) -> None:
        self._conf = Config()

    @property
    def conf(self) -> Config:
        """The configuration, including the files given by `-conf`."""
        if "_conf" not in self.__dict__:  # a subclass whose __init__ does not call this one
            self._conf = Config()
        return self._conf

    @conf.setter
    def conf(self, conf: Mapping[str, Any]) -> None:
        self._conf = Config(conf)

    def get_conf(self) -> Config:
        """Returns the configuration."""
        return self.conf

    @staticmethod
    def start(topology: ConfigurableTopology, args: Sequence[str]) -> int:
        """Reads the files named by `-conf` into the topology's configuration, and runs it with the other arguments.

        Returns:
            The result of `run`; 0 for None.

        Raises:
            ConfigError: no file follows `-conf`, or a file can't be read or holds no configuration.
        """
        rest = []
        given = iter(args)
        for argument in given:
            if argument != "-conf":
                rest.append(argument)
                continue
            file = next(given, None)
            if file is None:
                raise ConfigError("-conf takes the name of a YAML file, and none follows it")
            ConfigurableTopology.load_conf(file, topology.conf)
        return topology.run(rest) or 0

    @staticmethod
    def load_conf(resource: str, conf: Config) -> Config:
        """Adds the configuration in a YAML file to `conf`, and returns `conf`. A single key `config` may hold it.

        Raises:
            ConfigError: the file can't be read or holds no configuration.
        """
        conf.update(importlib.import_module(_CONF_FILES).read_file(Path(resource)))
        return conf

    @abstractmethod
    def run(self, args: list[str]) -> int | None:
        """Builds and submits the topology, and returns the result of `submit`.

        Args:
            args: the command line's arguments, without `-conf` and its files.
        """

    def submit(self, *what: Any) -> int:
        """Submits a topology: `submit(name, conf, builder)`, or `submit(conf, builder)` with `topology.name` in `conf`.

        Returns:
            0, or -1 if submitting failed; the error is then printed to standard error.

        Raises:
            TypeError: the arguments are neither of these.
            ConfigError: there is no name.
        """
        if len(what) not in (2, 3) or not isinstance(what[-1], TopologyBuilder) or not isinstance(what[-2], Mapping):
            raise TypeError("submit takes a name, a configuration and a TopologyBuilder; the first may be left out")
        conf, builder = what[-2:]
        name = what[0] if len(what) == 3 else _NameSettings.of(conf).name
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(f"a topology needs a name: give one, or set {Config.TOPOLOGY_NAME}")
        try:
            StormSubmitter.submit_topology(name, conf, builder.create_topology())
        except Exception:  # as in Storm, whatever it is
            if _taken:
                raise
            traceback.print_exc()
            return -1
        return 0
