"""A Nimbus of a later release, as far as ZooKeeper can tell: its records are of the next format.

    python -m lab.failover.newer nimbus CONF.json

It reads what this release writes, and writes what this release can't read: another format, with a field that is not
known here. Everything else is this release's code.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from storm_on_spark.cluster import records

_encode, _decode = records.encode, records.decode
_LATER = "of_a_later_release"


def _newer(record: records.Record) -> bytes:
    return json.dumps({**json.loads(_encode(record)), "format": record.VERSION + 1, _LATER: True}).encode()


def _either(type_: Any, data: bytes, where: str) -> Any:
    try:
        fields = json.loads(data)
    except ValueError:
        fields = None
    if isinstance(fields, dict) and fields.get("format") == type_.VERSION + 1:
        fields.pop(_LATER, None)
        data = json.dumps({**fields, "format": type_.VERSION}).encode()
    return _decode(type_, data, where)


if __name__ == "__main__":
    # Before anything imports them by name.
    records.encode, records.decode = _newer, _either
    from lab.failover.daemon import main

    sys.exit(main(*sys.argv[1:]))
