"""Errors of the queue spout.

```
StormError
└── QueueSpoutError     the spout can't continue: a login that is refused, no such queue, no tuple
```
"""

from __future__ import annotations

from storm_on_spark.api.errors import StormError


class QueueSpoutError(StormError, RuntimeError):
    """The spout can't continue, or waits for its server; the message says why."""
