"""Health checks are run by Storm's rules, and only those that nobody else can write."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from storm_on_spark.cli.main import main
from storm_on_spark.cluster.supervisor.health import HealthSettings, check_health, why_unhealthy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "checks"
    path.mkdir(mode=0o755)
    return path


def script(folder: Path, name: str, text: str, mode: int = 0o755) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return path


def results(folder: Path, timeout_ms: int = 5000) -> dict[str, str]:
    return {each.script: each.result for each in check_health(HealthSettings(str(folder), timeout_ms, True))}


def test_a_line_with_error_and_an_exit_code_make_a_failure(folder: Path) -> None:
    script(folder, "both", "echo fine; echo 'ERROR disk is full'; exit 2")
    script(folder, "code-alone", "exit 2")
    script(folder, "line-alone", "echo ERROR")
    script(folder, "inside", "echo 'no ERROR'; exit 1")
    script(folder, "not-executable", "echo ERROR; exit 1", 0o644)
    (folder / "a-folder").mkdir()
    assert results(folder) == {"both": "failed", "code-alone": "success", "line-alone": "success", "inside": "success"}
    checked = check_health(HealthSettings(str(folder), 5000, True))
    assert why_unhealthy(checked) == "both: failed (ERROR disk is full)"


def test_time_is_limited_also_for_what_a_script_leaves_behind(folder: Path, tmp_path: Path) -> None:
    left = tmp_path / "left"
    script(folder, "slow", f"(sleep 2; touch {left}) & sleep 600")
    script(folder, "background", f"(sleep 2; touch {left}) & exit 0")
    script(folder, "flood", "yes ERROR")
    begun = time.monotonic()
    assert results(folder, 500) == {"slow": "timeout", "background": "success", "flood": "timeout"}
    # Three of half a second at most; what they started has ended with them.
    deadline = begun + 4
    while time.monotonic() < deadline:
        assert not left.exists()
        time.sleep(0.1)


def test_what_others_can_write_is_not_run(folder: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script(folder, "anybodys", f"touch {ran}", 0o777)
    assert results(folder) == {"anybodys": "failed_with_exit_code"}
    folder.chmod(0o777)
    script(folder, "mine", f"touch {ran}")
    assert set(results(folder).values()) == {"failed_with_exit_code"}
    assert not ran.exists()
    assert set(results(tmp_path / "missing").values()) == {"failed_with_exit_code"}


def test_secrets_of_the_supervisor_are_not_the_scripts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hush")
    script(folder, "curious", 'test -z "$A_SECRET" || { echo ERROR; exit 1; }')
    assert results(folder) == {"curious": "success"}


def test_the_command_says_it_by_its_exit_code(folder: Path) -> None:
    script(folder, "fine", "exit 0")
    words = ["node-health-check", "--json", "-c", f"storm.health.check.dir={folder}"]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, json.loads(done.stdout)["healthy"]) == (0, True)
    script(folder, "ill", "echo ERROR; exit 1")
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, json.loads(done.stdout)["healthy"]) == (1, False)
    assert CliRunner().invoke(main, ["node-health-check"]).exit_code == 2
