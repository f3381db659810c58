"""Standard output for the answer alone."""

from __future__ import annotations

import os
import subprocess
import sys

# Prints to standard error at once, so that the thread that hands it on would import PySpark while this one does.
_PROGRAM = """
import sys
from storm_on_spark.spark.session.answer import answer_only
assert "pyspark" not in sys.modules
seen = []
start = __import__("threading").Thread.start
def noting(thread):
    seen.append((thread.name, "pyspark.sql.session" in sys.modules and hasattr(sys.modules["pyspark"], "__all__")))
    start(thread)
__import__("threading").Thread.start = noting
with answer_only(True) as answer:
    print("a line for people")
    from pyspark.sql import SparkSession
    print("the answer", file=answer)
print(seen[0], file=sys.stderr)
"""


def test_the_thread_that_hands_on_standard_error_begins_when_pyspark_is_imported() -> None:
    """Two threads that import PySpark at once find it half imported: a job under spark-submit failed so."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        # No JVM answers at this port: what is printed for people is lost, the answer is not.
        env={**os.environ, "PYSPARK_GATEWAY_PORT": "1", "PYSPARK_GATEWAY_SECRET": "none"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.stdout == "the answer\n", done.stderr
    assert "('stderr-to-jvm', True)" in done.stderr
