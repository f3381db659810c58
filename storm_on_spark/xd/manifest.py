"""The manifest of a deployment: how many instances a module has, which containers fit, and which message goes where."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from storm_on_spark.api.errors import StormError
from storm_on_spark.runtime.values.hashing import stable_hash
from storm_on_spark.xd.dsl import Stream
from storm_on_spark.xd.expressions import Expression, ExpressionError, parse_expression

MOST_INSTANCES: Final = 1_000
_BOOLEANS: Final = {"true": True, "false": False}
_NAMES: Final = ("count", "criteria", "partitionKeyExpression", "trackHistory")
_COUNT: Final = re.compile(r"[0-9]{1,6}")
_ROOTS: Final = ("groups", "attributes", "host", "ip")
"""What criteria are about."""


class ManifestError(StormError, ValueError):
    """A property of a deployment that makes no sense."""


@dataclass(frozen=True)
class ModuleManifest:
    """What a manifest says of one module.

    Args:
        count: of its instances; 0 for one in each matching container.
        criteria: which containers match; None for all.
        partition_key: of the messages that it emits; None for any downstream instance.
        track_history: whether a message's headers have its way.
    """

    count: int = 1
    criteria: Expression | None = None
    partition_key: Expression | None = None
    track_history: bool = False

    def matches(
        self, groups: Sequence[str], attributes: Mapping[str, str], host: str = "localhost", ip: str = "127.0.0.1"
    ) -> bool:
        """Whether a container may have the module; one for which the expression has no value may not."""
        if self.criteria is None:
            return True
        about = {"groups": list(groups), "attributes": dict(attributes), "host": host, "ip": ip}
        try:
            return self.criteria.of(about) is True
        except ExpressionError:
            return False

    def partition(self, payload: Any, headers: Mapping[str, Any]) -> int | None:
        """Returns the partition of a message, the same for equal keys; None for any.

        Raises:
            ExpressionError: the key has no value, or one that there are no partitions by.
        """
        if self.partition_key is None:
            return None
        key = self.partition_key.value(payload, headers)
        try:
            return stable_hash(key) >> 32
        except Exception as error:  # also what a value's own code raises
            raise ExpressionError(
                self.partition_key.text, 0, f"Expected a value to partition by, but {error}"
            ) from error


def parse_manifest(properties: Mapping[str, str], labels: Sequence[str]) -> dict[str, ModuleManifest]:
    """Returns what is said of each module.

    `module.*.<property>` is for all modules without that property.

    Args:
        properties: such as `module.log.count` -> `2`.
        labels: of the stream's modules.

    Raises:
        ManifestError: a property makes no sense.

    Example:
        >>> given = {"module.log.count": "2", "module.log.criteria": "groups.contains('io')"}
        >>> log = parse_manifest(given, ["time", "log"])["log"]
        >>> log.count, log.matches(["io"], {}), log.matches([], {})
        (2, True, False)
    """
    values: dict[str, dict[str, Any]] = {label: {} for label in labels}
    twice = [name for name in properties if ".producer." in name and name.replace(".producer.", ".") in properties]
    if twice:
        other = twice[0].replace(".producer.", ".")
        raise ManifestError(f"Expected one of {twice[0]:.100} and {other:.100}, which are the same; got both")
    # Those for all come first.
    for name in sorted(properties, key=lambda name: not name.startswith("module.*.")):
        # In Spring XD the key is a property of the producer.
        match = re.fullmatch(r"module\.(\*|[A-Za-z_][A-Za-z0-9_-]*)\.(?:producer\.(?=partitionKey))?([A-Za-z]+)", name)
        if match is None or match[2] not in _NAMES:
            some = ", ".join(f"module.<label>.{each}" for each in _NAMES)
            raise ManifestError(f"Expected one of {some}; got {name!r:.100}")
        if match[1] != "*" and match[1] not in values:
            raise ManifestError(f"Expected a module of the stream, one of {', '.join(labels)}; got {name!r:.100}")
        value = _value(name, match[2], properties[name])
        for label in labels if match[1] == "*" else [match[1]]:
            values[label].update(value)
    return {label: ModuleManifest(**values[label]) for label in labels}


def check_fused(stream: Stream, manifest: Mapping[str, ModuleManifest]) -> None:
    """Checks that a stream can be deployed as one topology with a manifest.

    Raises:
        ManifestError: it can't.

    Example:
        >>> from storm_on_spark.xd.dsl import parse_stream
        >>> check_fused(parse_stream("time | log"), parse_manifest({"module.log.count": "0"}, ["time", "log"]))
        Traceback (most recent call last):
        storm_on_spark.xd.manifest.ManifestError: A fused stream has all modules in one container: expected ...
    """
    if stream.source is not None or stream.sink is not None:
        raise ManifestError("A fused stream begins with a source and ends with a sink, without channels and taps")
    for label, module in manifest.items():
        if module.count == 0:
            raise ManifestError(
                f"A fused stream has all modules in one container: expected a count of at least 1 of {label}, got 0"
            )
        if module.partition_key is not None:
            raise ManifestError(f"A fused stream has no partitions: expected no partitionKeyExpression of {label}")


def _value(name: str, kind: str, text: str) -> dict[str, Any]:
    if kind == "count":
        if not _COUNT.fullmatch(text) or int(text) > MOST_INSTANCES:
            raise ManifestError(f"{name}: expected a number from 0 to {MOST_INSTANCES}, got {text!r:.100}")
        return {"count": int(text)}
    if kind == "trackHistory":
        if text not in _BOOLEANS:
            raise ManifestError(f"{name}: expected true or false, got {text!r:.100}")
        return {"track_history": _BOOLEANS[text]}
    try:
        if kind == "criteria":
            return {"criteria": parse_expression(text, roots=_ROOTS)}
        return {"partition_key": parse_expression(text)}
    except ExpressionError as error:
        raise ManifestError(f"{name}: {error.message} at character {error.position} of {text!r:.200}") from error
