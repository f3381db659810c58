"""Typed settings: what fits the key table, and what does not."""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

import storm_on_spark
from storm_on_spark.api.config import KEYS, effective_conf
from storm_on_spark.api.config.settings import Settings
from storm_on_spark.api.errors import ConfigError

PACKAGE = Path(storm_on_spark.__file__).parent

for path in PACKAGE.rglob("*.py"):
    if "(Settings):" in path.read_text("utf-8"):
        import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))

ALL = sorted(Settings.__subclasses__(), key=lambda kind: kind.__qualname__)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_defaults_are_those_of_the_key_table(kind: type[Any]) -> None:
    for conf in ({}, effective_conf({}), dict.fromkeys(KEYS)):
        found = kind.of(conf)
        for field in fields(found):
            value, default = getattr(found, field.name), kind.keys[field.name].default
            assert value == (tuple(default) if isinstance(default, list) else default)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_a_value_of_another_type_is_refused_and_named(kind: type[Any]) -> None:
    for key in kind.keys.values():
        with pytest.raises(ConfigError, match=key.name):
            kind.of({key.name: object()})


@dataclass(frozen=True)
class Sample(Settings):
    """One field of each type."""

    workers: Annotated[int, "topology.workers"]
    max_secs: Annotated[float, "topology.batch.max.secs"]
    debug: Annotated[bool, "topology.debug"]
    hooks: Annotated[tuple[str, ...] | None, "topology.auto.task.hooks"]
    slots: Annotated[tuple[int, ...], "supervisor.slots.ports"]
    login: Annotated[Literal["KERBEROS", "DIGEST", "NONE"], "pacemaker.auth.method"]
    durability: Annotated[Literal["process", "machine"] | None, "topology.durability"]


def test_lists_are_tuples_and_whole_numbers_become_floats_where_the_key_is_a_number() -> None:
    found = Sample.of(
        {"topology.batch.max.secs": 3, "topology.auto.task.hooks": ["a.B"], "supervisor.slots.ports": [1]}
    )
    assert found == Sample(1, 3.0, False, ("a.B",), (1,), "NONE", None)
    assert type(found.max_secs) is float
    with pytest.raises(AttributeError):
        found.workers = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "hint", "message"),
    [
        ("workers", Annotated[str, "topology.workers"], "the field must be <class 'int'>"),
        ("workers", Annotated[int | None, "topology.workers"], "the field must be <class 'int'>"),
        ("partitions", Annotated[int, "topology.partitions"], "the field must be int | None"),
        ("timeout", Annotated[int, "topology.message.timeout.secs"], "its name must end with _secs"),
        ("timeout_ms", Annotated[int, "topology.message.timeout.secs"], "its name must end with _secs"),
        ("interval_secs", Annotated[int, "topology.batch.min.interval.ms"], "its name must end with _ms"),
        ("workers", Annotated[int, "topology.wrkers"], "is not a configuration key that has an effect"),
        ("debug", Annotated[int, "topology.stats.sample.rate"], "is not a configuration key that has an effect"),
        ("workers", int, "names no key"),
        ("login", Annotated[Literal["NONE", "DIGEST"], "pacemaker.auth.method"], "the field must be <class 'str'>"),
        ("durability", Annotated[Literal["process", "machine"], "topology.durability"], "the field must be str | None"),
        ("workers", Annotated[Literal[1, 2], "topology.workers"], "the field must be <class 'int'>"),
    ],
)
def test_a_class_that_does_not_fit_the_key_table_is_refused(name: str, hint: Any, message: str) -> None:
    with pytest.raises(TypeError) as refused:
        type("Wrong", (Settings,), {"__annotations__": {name: hint}}).of({})  # type: ignore[attr-defined]
    assert message in str(refused.value)
