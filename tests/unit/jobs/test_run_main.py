"""Jobs as scripts: what is refused before Spark starts, and with which exit code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import word_count

from storm_on_spark import Topology
from storm_on_spark.spark.main import run_main

JOBS = Path(word_count.__file__).parent


def exit_code(conf: dict[str, Any], *argv: str) -> object:
    with pytest.raises(SystemExit) as caught:
        run_main(word_count.build, conf, argv=argv)
    return caught.value.code


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["-c", "word.count.input=/no/such/text"], "word.count.input names '/no/such/text', which does not exist"),
        (["-c", "word.count.tasks=many"], "the parallelism must be an int of at least 1, not 'many'"),
        (["-c", "topology.message.timeout.sec=3"], "topology.message.timeout.secs"),
        (["-c", "word.count.tasks"], "-c takes KEY=VALUE, such as topology.workers=2, not 'word.count.tasks'"),
        (["-c", "a=[1"], "-c a: "),
    ],
)
def test_bad_configuration_is_one_sentence_and_exit_code_2(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code({}, *argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert message in err
    assert "Traceback" not in err


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code({}, "--nonsense") == 2
    assert "unrecognized arguments: --nonsense" in capsys.readouterr().err


def test_the_command_line_goes_over_the_modules_configuration() -> None:
    seen: list[Mapping[str, Any]] = []

    def build(conf: Mapping[str, Any]) -> Topology:
        seen.append(dict(conf))
        raise word_count.ConfigError("enough")

    with pytest.raises(SystemExit):
        run_main(build, {"a": 1, "b": 2}, argv=["-c", "b=true", "-c", "c=x=y"])
    assert seen == [{"a": 1, "b": True, "c": "x=y"}]


def test_a_job_is_a_script_that_explains_its_options() -> None:
    done = subprocess.run(
        [sys.executable, str(JOBS / "word_count.py"), "--help"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "KEY=VALUE" in done.stdout


@pytest.mark.parametrize("job", sorted(path.name for path in JOBS.glob("*.py")))
def test_every_job_is_a_script(job: str) -> None:
    ending = (JOBS / job).read_text().rpartition('if __name__ == "__main__":')[2]
    assert "run_main(build, conf" in ending
