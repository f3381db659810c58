"""Runs one case: `python -m lab.benchmarks.child CASE SETUP`. The last line is what it measured."""

from __future__ import annotations

import importlib
import json
import sys

from lab.benchmarks.cases import CASES
from lab.benchmarks.contenders import Setup


def main() -> None:
    """Runs the case."""
    case = CASES[sys.argv[1]]
    contender = importlib.import_module(f"lab.benchmarks.contenders.{case.contender}")
    result = contender.run(case, Setup.from_dict(json.loads(sys.argv[2])))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
