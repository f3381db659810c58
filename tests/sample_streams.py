"""A site with prepared streams: deployed, failed and undeployed, small and large, with names that want to do harm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from sample_jobs import SampleJobs
from sample_site import HARM, NOW

from storm_on_spark.cluster.errors import NotFoundError, TransitionError, UnavailableError
from storm_on_spark.web.sites.streams import StreamsSite
from storm_on_spark.xd.admin.rest.app import Parts
from storm_on_spark.xd.admin.rest.schemas import (
    ContainerView,
    DeploymentView,
    MetricsView,
    RateView,
    RuntimeModuleView,
)
from storm_on_spark.xd.dsl import DslError, parse_stream
from storm_on_spark.xd.modules.local_registry import LocalRegistry
from storm_on_spark.xd.parts import types_of
from storm_on_spark.xd.tree.nodes import ChangeNode, Kind

FIRST, SECOND = "2ebbbc9b-63ac-4da4-aa32-e39d69eb546b", "7f10aa02-1111-4da4-aa32-e39d69eb546b"
LONG_NAME = "a-stream-with-a-name-that-is-longer-than-any-column-" * 3
STREAMS = {
    "orders": "http --port=9000 | filter --expression=payload.contains('order') | jdbc --url=jdbc:postgresql://ann:hush@db/sales",
    "watch": "tap:stream:orders.filter > counter",
    "late": "queue:late > transform --expression=payload.upper() | log",
    "broken": "time | script --location=/jobs/shout.py | log",
    "whole": "time | log",
    "idle": "time | log",
    "sixty": "time | " + " | ".join(f"p{at}: transform --expression=payload" for at in range(58)) + " | log",
    LONG_NAME: "time | log",
    HARM: HARM,
}
DEPLOYED = ("orders", "watch", "late", "broken", "whole", "sixty")


def rates() -> dict[str, RateView]:
    return {
        "orders.source.http.1": RateView(input=0.0, output=1_234_567.0),
        "orders.processor.filter.1": RateView(input=1_234_567.0, output=412.5),
        "orders.sink.jdbc.1": RateView(input=412.5, output=0.0),
        "watch.sink.counter.1": RateView(input=412.5, output=0.0),
    }


def container(name: str, host: str, modules: int, messages: int, told: dict[str, RateView]) -> ContainerView:
    return ContainerView(
        container_id=name,
        host=host,
        ip="192.168.1.6",
        pid=19_222,
        groups=("io", "fast"),
        attributes={"rack": "7"},
        deployed_modules=modules,
        metrics=MetricsView(
            started=round(1e3 * (NOW - 3600)),
            modules=modules,
            messages_in=messages,
            messages_out=messages,
            rates=told,
            memory=180 << 20,
            cores=0.25,
        ),
    )


class SampleStreams:
    """Definitions, runtime, copy and list of changes in one, in memory."""

    def __init__(self) -> None:
        self.texts = dict(STREAMS)
        self.deployed = dict.fromkeys(DEPLOYED, "deployed") | {"broken": "failed"}
        self.done: list[tuple[str, str, Mapping[str, str], bool]] = []
        self.changes = Noted()
        self.connected = True
        self.leads = "admin-1:9393"
        self.full = [container(FIRST, "host-1", 66, 1_000_000, rates()), container(SECOND, HARM, 0, 0, {})]
        self.jobs = SampleJobs()
        parts = Parts(self, self, self.jobs, cast(Any, self.jobs), LocalRegistry(), self.changes)
        self.site = StreamsSite(parts, self, "admin-2:9393", lambda: self.connected, now=lambda: NOW)

    # Definitions, and the copy.

    def definitions(self, kind: Kind) -> dict[str, str]:
        return dict(self.texts) if kind == "stream" else self.jobs.all()

    def leader(self) -> str:
        return self.leads

    def create(self, name: str, definition: str) -> None:
        self.texts[name] = definition

    def remove(self, name: str) -> None:
        self.get(name)
        del self.texts[name]
        self.done.append(("destroy", name, {}, False))

    def get(self, name: str) -> str:
        if name not in self.texts:
            raise NotFoundError(f"There is no stream named '{name}'")
        return self.texts[name]

    def all(self) -> dict[str, str]:
        return self.definitions("stream")

    # Runtime.

    def deploy(self, name: str, properties: Mapping[str, str], fused: bool) -> DeploymentView:
        if not self.leads:
            raise UnavailableError(f"No leader has taken up within 20 s that stream '{name}' is to be deployed")
        if name in self.deployed:
            raise TransitionError(f"The stream named '{name}' is already deployed")
        self.deployed[name] = "deployed"
        self.done.append(("deploy", name, properties, fused))
        return self.deployments()[name]

    def undeploy(self, name: str) -> None:
        if self.deployed.pop(name, None) is None:
            raise TransitionError(f"The stream named '{name}' is not currently deployed")
        self.done.append(("undeploy", name, {}, False))

    def deployment(self, name: str) -> DeploymentView | None:
        return self.deployments().get(name)

    def deployments(self) -> dict[str, DeploymentView]:
        return {
            name: DeploymentView(
                name=name,
                state=state,  # type: ignore[arg-type]
                properties={"module.jdbc.count": "2", "module.jdbc.criteria": HARM} if name == "orders" else {},
                modules=(),
            )
            for name, state in self.deployed.items()
        }

    def containers(self) -> list[ContainerView]:
        return self.full

    def modules(self) -> list[RuntimeModuleView]:
        found = []
        for name in self.deployed:
            try:
                types = types_of(parse_stream(self.texts[name], name))
            except DslError:
                continue
            for label, type_ in types.items():
                failed = name == "broken" and label == "script"
                found.append(
                    RuntimeModuleView(
                        name=f"{name}.{type_}.{label}.1",
                        container_id=FIRST,
                        options={"password": "hush", "expression": HARM} if failed else {"port": "9000"},
                        deployment_properties={"fused": "real time"} if name == "whole" else {"count": "1"},
                        state="failed" if failed else "deployed",
                        error=f"ScriptError: /jobs/shout.py: password=hush {HARM}" if failed else "",
                    )
                )
        return found


class Noted:
    """A list of changes."""

    def __init__(self) -> None:
        self.found = [ChangeNode(time=NOW - 60, who=HARM, what="deploy stream", name="orders")]

    def note(self, who: str, what: str, name: str) -> None:
        self.found.insert(0, ChangeNode(time=NOW, who=who, what=what, name=name))

    def all(self) -> list[ChangeNode]:
        return list(self.found)
