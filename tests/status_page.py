"""What a Nimbus tells of a topology, for tests of what is shown of it."""

from __future__ import annotations

from typing import Any

COUNTS = {"emitted": 1, "transferred": 1, "acked": 1, "failed": 12}


def status_page(**changes: Any) -> dict[str, Any]:
    """Returns the page of a topology without components, with changes."""
    return {
        "name": "words",
        "id": "words-1-1700000000",
        "status": "ACTIVE",
        "owner": "ann",
        "uptime": "21s",
        "workers": [],
        "driverStatus": "",
        "replicationCount": 2,
        "spoutStats": COUNTS,
        "topologyStats": [COUNTS],
        "completeLatencyMs": {},
        "pending": 0,
        "failure": None,
        "spouts": [],
        "bolts": [],
        **changes,
    }
