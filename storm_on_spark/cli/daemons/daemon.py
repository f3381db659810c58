"""What commands that run until they are told to end share."""

from __future__ import annotations

import logging


def log_to_stderr(debug: bool) -> None:
    """Has everything logged that happens in a daemon."""
    from storm_on_spark.cluster.security.logs import log_safely

    log_safely("%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("storm_on_spark").setLevel(logging.DEBUG if debug else logging.INFO)
    for name in ("httpx", "kazoo", "py4j"):
        logging.getLogger(name).setLevel(logging.WARNING)
