"""Errors of the Kafka connector.

```
StormError
└── KafkaSpoutError     the spout can't go on: an offset that is gone, a record that can't be translated, no permission
```
"""

from __future__ import annotations

from storm_on_spark.api.errors import StormError


class KafkaSpoutError(StormError, RuntimeError):
    """The spout can't go on without a decision of its user's; the message says where it stands and what can be done."""
