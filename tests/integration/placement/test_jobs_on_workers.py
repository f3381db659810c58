"""A topology of jobs/ on a real standalone cluster, both of whose workers are killed under load."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from lengths import PATIENCE_SECS
from processes import ROOT, environment, kill_group

from storm_on_spark.cluster.standalone import StandaloneCluster

LINES = 12_000


# A worker of such a cluster is killed in `test_executors_apart.py`, and before a job in `test_compiled_jobs.py`.
@pytest.mark.soak
@pytest.mark.timeout(300)
def test_the_word_count_is_exact_although_both_workers_are_killed_under_load(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("".join(f"storm {number % 7} spark{number % 11} on\n" for number in range(LINES)))
    commits = tmp_path / "checkpoint" / "commits"
    with StandaloneCluster(tmp_path / "spark", cores=1) as cluster:
        command = [
            sys.executable,
            "-m",
            "storm_on_spark.cli",
            "run",
            str(ROOT / "jobs" / "word_count.py"),
            "--json",
            "--quiet",
        ]
        command += ["--master", cluster.master, "--checkpoint", str(tmp_path / "checkpoint")]
        command += ["-c", f"word.count.input={text}", "-c", "topology.max.spout.pending=1000"]
        command += ["-c", "topology.message.timeout.secs=600", "-c", "topology.partitions=2"]
        for key, value in cluster.conf.items():
            command += ["-c", f"{key}={value}"]
        with (tmp_path / "log").open("wb") as log:
            run = subprocess.Popen(
                command,
                env={**environment(tmp_path / "tmp"), **cluster.environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

        def committed() -> int:
            return len([file for file in commits.glob("*") if file.name.isdigit()]) if commits.exists() else 0

        def wait_for_commits(wanted: int) -> None:
            deadline = time.monotonic() + PATIENCE_SECS
            while committed() < wanted:
                assert run.poll() is None, (tmp_path / "log").read_text()[-3000:] or "it ended before the fault"
                assert time.monotonic() < deadline, (tmp_path / "log").read_text()[-3000:]
                time.sleep(0.05)

        try:
            wait_for_commits(2)
            for host in list(cluster.workers):
                assert cluster.executors(host), "the worker to be killed has an executor"
                before = committed()
                cluster.kill_worker(host)
                cluster.start_worker(host)
                wait_for_commits(before + 2)
            assert run.poll() is None, "all was done before the last fault"
            out, _ = run.communicate(timeout=180)
        finally:
            kill_group(run)
            run.communicate()
    assert run.returncode == 0, (tmp_path / "log").read_text()[-3000:]
    found = json.loads(out)
    assert (found["acked"], found["failed"], found["pending"], found["error"]) == (LINES, 0, 0, None)
    counts = Counter(text.read_text().split())
    expected = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:20]
    assert [(row["word"], row["count"]) for row in found["result"]] == expected
