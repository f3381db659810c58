"""Commands in Flux files: the classes that stand for Storm's `FluxShellBolt` and `FluxShellSpout`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from storm_on_spark.multilang.component import ShellComponent
from storm_on_spark.multilang.errors import ShellError
from storm_on_spark.multilang.shell_bolt import ShellBolt
from storm_on_spark.multilang.shell_spout import ShellSpout


class _FluxShell(ShellComponent):
    """What a Flux file may say of both.

    Args:
        command: program and arguments.
        output_fields: of the default stream.

    Raises:
        ShellError: they are not lists of strings.
    """

    def __init__(self, command: Sequence[str], output_fields: Sequence[str] = ()) -> None:
        super().__init__(command, _names(output_fields, "the output fields"))
        self._configuration: dict[str, Any] = {}

    def set_default_stream(self, output_fields: Sequence[str]) -> None:
        """Sets the fields of the default stream."""
        self.set_named_stream("default", output_fields)

    def set_named_stream(self, name: str, output_fields: Sequence[str]) -> None:
        """Sets the fields of a stream."""
        self._streams[name] = _names(output_fields, f'the fields of stream "{name}"')

    def add_component_config(self, key: str, value: Any) -> None:
        """Sets a key of the component's configuration."""
        self._configuration[key] = value

    def set_env(self, environment: Mapping[str, str]) -> None:
        """Sets variables of the child's environment."""
        self._environment = {str(key): str(value) for key, value in environment.items()}

    def get_component_configuration(self) -> Mapping[str, Any] | None:
        """Returns what `add_component_config` has set."""
        return self._configuration or None


class FluxShellBolt(_FluxShell, ShellBolt):
    """A command as a bolt; see `ShellBolt`.

    Example:
        >>> bolt = FluxShellBolt(["node", "split.js"], ["word"])
    """


class FluxShellSpout(_FluxShell, ShellSpout):
    """A command as a spout; see `ShellSpout`."""


def _names(given: Sequence[str], what: str) -> list[str]:
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise ShellError(f"{what} are a list of strings, not {given!r:.200}")
    return list(given)
