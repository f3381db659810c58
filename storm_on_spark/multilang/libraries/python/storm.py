"""`import storm` of a component whose folder has no `storm.py`; one that is anywhere else on the path comes first."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_found = importlib.machinery.PathFinder.find_spec(
    __name__, [place for place in sys.path if os.path.abspath(place or ".") != _here]
)
if _found is not None and _found.loader is not None:
    sys.modules[__name__] = _module = importlib.util.module_from_spec(_found)
    _found.loader.exec_module(_module)
else:
    from storm_multilang import *  # noqa: F403
