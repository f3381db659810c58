"""A process group that lives: a live process takes the group's leader for Spark's daemon, and ends without it."""

from __future__ import annotations

import os

import psutil
import pytest


@pytest.fixture(autouse=True, scope="session")
def living_group() -> None:
    """Makes this process the leader of its own group, if the shell that led the present group has ended.

    That is so when the tests run in the background of a shell that is gone.
    """
    if not psutil.pid_exists(os.getpgrp()):
        os.setpgid(0, 0)
