"""What components log is seen, once."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

BEGIN = """
    import logging
    from storm_on_spark.api.text.logs import component_logger

    logger = component_logger("count")
    assert component_logger("count") is logger
"""


def said(program: str) -> str:
    """Returns what a process says on standard error: pytest takes all records, a worker has no handler."""
    code = dedent(BEGIN) + dedent(program)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stderr


def test_a_record_from_info_on_is_written_once() -> None:
    program = """
        logger.debug("not this")
        logger.info("counted %d", 3)
        logger.warning("late")
    """
    assert said(program) == "INFO counted 3\nWARNING late\n"


def test_what_another_handler_takes_is_left_to_it() -> None:
    program = """
        logging.basicConfig(level=logging.WARNING, format="root: %(message)s")
        logging.getLogger().handlers[0].setLevel(logging.WARNING)
        logger.info("here")
        logger.error("there")
    """
    assert said(program) == "INFO here\nroot: there\n"
