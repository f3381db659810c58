"""Errors of the Kafka connector.

```
StormError
├── KafkaSpoutError     the spout can't go on: an offset that is gone, a record that can't be translated, no permission
└── KafkaBoltError      records were not written; their tuples failed
```
"""

from __future__ import annotations

from storm_on_spark.api.errors import StormError


class KafkaSpoutError(StormError, RuntimeError):
    """The spout can't go on without a decision of its user's; the message says where it stands and what can be done."""


class KafkaBoltError(StormError, RuntimeError):
    """Records were not written; the message says how many and why. Their tuples failed."""
