"""`python -m storm_on_spark.cluster.nimbus CONF.yaml`: a Nimbus, until it is told to end."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import yaml

from storm_on_spark.api.errors import StormError
from storm_on_spark.cluster.nimbus.daemon import Nimbus
from storm_on_spark.cluster.security.logs import log_safely


def main(arguments: list[str]) -> int:
    """Runs a Nimbus and returns its exit code."""
    if len(arguments) != 1:
        print("usage: python -m storm_on_spark.cluster.nimbus CONF.yaml", file=sys.stderr)  # noqa: T201
        return 2
    log_safely("%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        conf = yaml.safe_load(Path(arguments[0]).read_text("utf-8")) or {}
        if not isinstance(conf, dict):
            raise StormError(f"{arguments[0]} holds no configuration, but {type(conf).__name__}")
        Nimbus(conf).run()
    except (OSError, yaml.YAMLError, StormError) as error:
        print(f"nimbus: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
