"""What operators ask of a cluster beside the life of topologies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from storm_on_spark.cluster.client.paths import path_part
from storm_on_spark.cluster.credentials import checked_credentials

Json = dict[str, Any]


class Operations:
    """A part of `NimbusClient`."""

    @abstractmethod
    def topology_id(self, name: str) -> str:
        """Returns the id of a topology."""

    @abstractmethod
    def _get(self, path: str) -> Json:
        """Asks any Nimbus."""

    @abstractmethod
    def _post(self, path: str, body: Json | None) -> Json:
        """Asks the leader to change something."""

    def drain(self, supervisor: str, *, undo: bool = False, dry_run: bool = False) -> Json:
        """Moves topologies away from a supervisor and gives it no others, or gives it some again.

        Args:
            supervisor: its id, or its host if that has but one.
            undo: whether it gets topologies again.
            dry_run: whether to say only what would move.
        """
        path = f"/supervisor/{path_part(supervisor)}"
        if dry_run:
            return self._get(f"{path}/drain")
        return self._post(f"{path}/{'undrain' if undo else 'drain'}", None)

    def problems(self) -> list[Json]:
        """Returns what is left over or missing in ZooKeeper."""
        return list(self._get("/admin/problems")["problems"])

    def repair(self) -> list[Json]:
        """Repairs what needs no decision, and returns that."""
        return list(self._post("/admin/repair", None)["problems"])

    def log_levels(self, name: str) -> dict[str, Json]:
        """Returns the changed levels of a topology's loggers, as `topology/:id/logconfig` gives them."""
        return dict(self._get(f"/topology/{path_part(self.topology_id(name))}/logconfig")["namedLoggerLevels"])

    def set_log_levels(self, name: str, levels: Mapping[str, tuple[str, float] | None]) -> dict[str, Json]:
        """Changes levels of a topology's loggers while it runs.

        Args:
            name: the topology's name or id.
            levels: logger -> level and for how many seconds (0 without a limit); None takes a change back.

        Returns:
            All levels that are changed, then.
        """
        body = {
            "namedLoggerLevels": {
                logger: {} if level is None else {"target_level": level[0], "timeout": level[1]}
                for logger, level in levels.items()
            }
        }
        path = f"/topology/{path_part(self.topology_id(name))}/logconfig"
        return dict(self._post(path, body)["namedLoggerLevels"])

    def push_credentials(self, name: str, credentials: Mapping[str, str]) -> None:
        """Gives a topology that runs new credentials, in place of those that it has; as Storm's `pushCredentials`.

        Its spouts and bolts that are an `ICredentialsListener` get them between tuples, and in every later run.

        Args:
            name: the topology's name or id.
            credentials: name -> secret, at most 64,000 bytes in all; empty to take them away.

        Raises:
            TransitionError: they are not a mapping of names to texts, or too large; the error shows no value.
        """
        body = {"credentials": checked_credentials(credentials)}
        self._post(f"/topology/{path_part(self.topology_id(name))}/credentials", body)

    def sample(self, name: str, component: str, percent: float) -> None:
        """Samples a share of the tuples of a component, or of all for an empty name; 0 for none."""
        part = f"component/{path_part(component)}/" if component else ""
        action = "enable" if percent else "disable"
        self._post(f"/topology/{path_part(self.topology_id(name))}/{part}debug/{action}/{percent:f}", None)
