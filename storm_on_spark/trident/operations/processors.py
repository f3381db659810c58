"""What the lowering asks of operations."""

from __future__ import annotations

from storm_on_spark.streams.operations.processor import Processor
from storm_on_spark.trident.operations.persisting import Persist
from storm_on_spark.trident.operations.windows import Window


def waits_for_commit(processor: Processor) -> bool:
    """Returns whether an operation has its effect in the commit of a batch, and not before."""
    return isinstance(processor, (Persist, Window))
