"""Errors of the Kafka connector.

```
StormError
├── KafkaSpoutError     the spout can't continue: an offset is gone, a record can't be translated, no permission
└── KafkaBoltError      records were not written; their tuples failed
```
"""

from __future__ import annotations

from storm_on_spark.api.errors import StormError


class KafkaSpoutError(StormError, RuntimeError):
    """The spout can't continue without a decision of its user; the message says where it is and what can be done."""


class KafkaBoltError(StormError, RuntimeError):
    """Records were not written; the message says how many and why. Their tuples failed."""
