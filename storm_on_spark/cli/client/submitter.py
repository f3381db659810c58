"""The implementation of `StormSubmitter`: like `storm-spark submit`, for a topology that exists as an object."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from storm_on_spark.api.building.submitter import ProgressListener, Submitted
from storm_on_spark.api.config.secrets import without_secrets
from storm_on_spark.api.text.printable import printable
from storm_on_spark.cli.client.needs import need_libraries
from storm_on_spark.cli.client.which_cluster import connect, find_cluster, topologys
from storm_on_spark.runtime.processes.ending.at_once import temporary_folder

if TYPE_CHECKING:
    from storm_on_spark.cluster.client.nimbus_client import SubmitProgress

UPLOAD_SHOWN_BYTES: Final = 1_000_000
"""A smaller upload is over before anybody could read its progress."""


def submit(submitted: Submitted, listener: ProgressListener | None = None) -> str:
    """Submits a topology, and returns its id; errors as for `StormSubmitter.submit_topology`."""
    need_libraries()
    from storm_on_spark.cluster.code.packing.bundle import pack_object
    from storm_on_spark.cluster.plan_summary import PlanSummary
    from storm_on_spark.runtime.run.spec import pickled_whole
    from storm_on_spark.spark.compiled import compile_topology

    conf = topologys(submitted.conf)
    with connect(find_cluster(submitted.conf, (), None)) as client:
        compiled = compile_topology(submitted.topology, conf)
        compiled.check()
        if compiled.warning:
            print(printable(compiled.warning), file=sys.stderr)  # for the user of the program
        plan = PlanSummary.of_graph(compiled.graph).document()
        with temporary_folder("storm-spark-submit-") as scratch:
            folder = scratch / "packed"
            pack_object(submitted.topology, pickled_whole(submitted.topology), folder, conf=conf, plan=plan)
            return client.submit(
                folder,
                submitted.name,
                without_secrets(conf),
                active=submitted.options.initial_status == "ACTIVE",
                progress=_told(listener),
            )


def _told(listener: ProgressListener | None) -> Callable[[SubmitProgress], None]:
    """Returns a function that reports the upload to a listener, as if it were one file."""
    begun = done = False
    size = 0

    def tell(step: SubmitProgress) -> None:
        nonlocal begun, done, size
        if listener is None or done:
            return
        files = step.artifact, step.topology_id
        if step.phase == "uploading":
            size = step.size
            if not begun:
                begun = True
                listener.on_start(*files, step.size)
            listener.on_progress(*files, step.sent, step.size)
        elif begun:
            done = True
            listener.on_completed(*files, size)

    return tell


class ProgressBar:
    """Shows the progress of an upload on standard error."""

    def on_start(self, src_file: str, target_file: str, total_bytes: int) -> None:
        """Prints the size of the upload."""
        if total_bytes > UPLOAD_SHOWN_BYTES:
            self._say(f"uploading {total_bytes:,} bytes ...")

    def on_progress(self, src_file: str, target_file: str, bytes_uploaded: int, total_bytes: int) -> None:
        """Redraws the bar if standard error is a terminal."""
        if total_bytes > UPLOAD_SHOWN_BYTES and sys.stderr.isatty():
            part = bytes_uploaded / total_bytes
            sys.stderr.write(f"\r[{'=' * int(40 * part):<40}] {bytes_uploaded:,} of {total_bytes:,} bytes")
            sys.stderr.flush()

    def on_completed(self, src_file: str, target_file: str, total_bytes: int) -> None:
        """Prints that the upload is complete."""
        if total_bytes <= UPLOAD_SHOWN_BYTES:
            return
        if sys.stderr.isatty():
            sys.stderr.write("\n")
        self._say("uploaded")

    def _say(self, text: str) -> None:
        print(printable(text), file=sys.stderr)  # it is there for that
