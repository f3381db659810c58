"""Like bad.py, but only as long as the file `<folder>/<how>` is not there: `bad_once.py how folder`."""

from __future__ import annotations

import sys
from pathlib import Path

import bad

if __name__ == "__main__":
    how, marker = sys.argv[1], Path(sys.argv[2], sys.argv[1])
    first = not marker.exists()
    marker.touch()
    bad.main(how if first else "none")
