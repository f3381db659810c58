"""`storm-spark compile`: what it writes, what it refuses to write over, and that what it wrote can be loaded."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from storm_on_spark.artifact import main as program
from storm_on_spark.cli.main import main
from storm_on_spark.cluster.code.checksums import artifacts_of
from storm_on_spark.spark.session.folders.owned import remove_abandoned

ROOT = Path(__file__).parents[3]
UNIT = Path(__file__).parents[1]
WORD_COUNT = ROOT / "jobs" / "word_count.py"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["compile", *map(str, arguments)])


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact of the word count."""
    out = tmp_path_factory.mktemp("artifact") / "out"
    done = invoke(
        WORD_COUNT,
        "-o",
        out,
        "-c",
        "my.password=unheard-of",
        "-c",
        "spark.driver.memory=3g",
        "-c",
        "word.count.tasks=3",
    )
    assert done.exit_code == 0, done.output
    assert "my.password may hold a secret and is left out" in done.stderr
    return out


def test_an_artifact_is_complete_and_says_how_it_is_started(written: Path) -> None:
    found = content(written)
    assert set(found) == {
        *(
            "main.py",
            "log4j2.properties",
            "job.zip",
            "manifest.json",
            "plan.json",
            "plan.mmd",
            "plan.html",
            "jars.json",
            "README.md",
        ),
        *("SHA256SUMS", "topology/code.zip", "topology/conf.json", "topology/plan.json", "topology/topology.json"),
    }
    sums = dict(reversed(line.split("  ")) for line in found["SHA256SUMS"].decode().splitlines())
    assert sums == {
        name: hashlib.sha256(data).hexdigest()
        for name, data in found.items()
        if name not in ("SHA256SUMS", "manifest.json")
    }
    plan = json.loads(found["plan.json"])
    assert set(plan["components"]) == {"sentences", "split", "count"}
    assert found["plan.mmd"].startswith(b"flowchart LR")
    assert b"<svg" in found["plan.html"]
    readme = found["README.md"].decode()
    java = "'-Xss8m -Dlog4j2.configurationFile=log4j2.properties'"
    options = f"--driver-java-options {java} --conf spark.driver.memory=3g main.py"
    assert f"\nspark-submit --master spark://HOST:7077 {options} --checkpoint CHECKPOINT\n" in readme
    assert f"\nspark-submit --master 'local[*,4]' {options}\n" in readme
    assert "Secrets do not travel: `my.password`" in readme
    job = zipfile.ZipFile(written / "job.zip").read("job.json")
    assert not [name for name, data in {**found, "job.json": job}.items() if b"unheard-of" in data]
    # The part for a Nimbus is what `submit` would upload.
    assert {info.name for info in artifacts_of(written / "topology")} == {
        *("code.zip", "conf.json", "plan.json", "topology.json"),
    }


@pytest.mark.parametrize(
    ("master", "cores", "rest"),
    [("local[2,4]", 2, ""), ("spark://a:7077", 4, " --checkpoint CHECKPOINT"), ("yarn", 4, " --checkpoint CHECKPOINT")],
)
def test_the_line_that_starts_it_is_for_the_master_that_was_named(
    tmp_path: Path, master: str, cores: int, rest: str
) -> None:
    done = invoke(WORD_COUNT, "-o", tmp_path / "out", "--master", master)
    assert done.exit_code == 0, done.output
    line = done.stdout.splitlines()[-1].strip()
    words = shlex.split(line)
    assert words[:3] == ["spark-submit", "--master", master]
    assert line.endswith(f" main.py{rest}")
    readme = (tmp_path / "out" / "README.md").read_text()
    assert re.findall(r"^spark-submit .*$", readme, re.MULTILINE)[0] == line
    assert f"drawn for {cores} cores" in readme
    again = invoke(WORD_COUNT, "-o", tmp_path / "out", "--master", master, "--json")
    assert json.loads(again.stdout)["command"] == line


def test_spark_logs_warnings_alone_unless_the_topology_says_what_else(tmp_path: Path) -> None:
    invoke(WORD_COUNT, "-o", tmp_path / "out", "-c", "spark.driver.extraJavaOptions=-Dlog4j.configurationFile=mine.xml")
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "--driver-java-options '-Xss8m -Dlog4j.configurationFile=mine.xml'" in readme
    assert "rootLogger.level = warn" in (tmp_path / "out" / "log4j2.properties").read_text()


def test_the_archive_brings_the_package_and_what_it_needs_but_not_sparks_own(written: Path) -> None:
    names = zipfile.ZipFile(written / "job.zip").namelist()
    tops = {name.split("/")[1] for name in names if name.startswith("python/")}
    assert {"storm_on_spark", "cloudpickle", "yaml", "rich", "click"} <= tops
    assert not tops & {"pyspark", "py4j", "pyarrow", "numpy", "pandas", "google", "grpc", "pytest", "bin"}
    assert {"job.json", "code/word_count.py", "python/storm_on_spark/spark/session/log4j2.properties"} <= set(names)
    assert not [
        name for name in names if "__pycache__" in name or name.endswith(("RECORD", "INSTALLER", "direct_url.json"))
    ]


@pytest.mark.slow
def test_the_same_topology_gives_the_same_bytes_wherever_and_whenever(tmp_path: Path) -> None:
    folders = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "word_count.py").write_bytes(WORD_COUNT.read_bytes())
        os.utime(folder / "word_count.py", (10**9 + number, 10**9 + number))
        command = [sys.executable, "-m", "storm_on_spark.cli", "compile", "word_count.py", "-o", "out", "--quiet"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(number)}
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        folders.append(folder / "out")
    assert content(folders[0]) == content(folders[1])


def test_check_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = invoke(WORD_COUNT, "--check", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["topology"], document["folder"], document["error"]) == ("word-count", None, None)
    assert not list(tmp_path.iterdir())


def test_a_secret_in_the_code_is_told(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_bytes(WORD_COUNT.read_bytes() + b'\nconf["words.password"] = "x"\n')
    done = invoke(tmp_path / "words.py", "--check")
    assert done.exit_code == 0, done.output
    assert "Warning: words.password may hold a secret and is part of the topology's code, which travels" in done.stderr
    assert "left out" not in done.stderr


def test_an_artifact_is_replaced_and_anything_else_is_not(written: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    # An artifact of our own, without the price of compiling it.
    subprocess.run(["cp", "-r", str(written), str(out)], check=True)
    (out / "plan.mmd").unlink()
    assert invoke(WORD_COUNT, "-o", out).exit_code == 0
    assert (out / "plan.mmd").exists()

    def refused(what: str) -> None:
        before = content(tmp_path)
        done = invoke(WORD_COUNT, "-o", out)
        assert (done.exit_code, done.stdout) == (1, "")
        assert what in done.stderr
        assert content(tmp_path) == before, "it is as it was"

    (out / "notes.txt").write_text("mine")
    refused("holds notes.txt, which is not of its artifact")
    (out / "notes.txt").unlink()
    (out / "main.py").write_text("mine")
    refused("holds main.py, which was changed after it was written")
    (out / "manifest.json").write_text('{"format": 99}')
    refused("is not an artifact; name a new or an empty folder")
    out.rename(tmp_path / "elsewhere")
    out.symlink_to(tmp_path / "elsewhere")
    refused("is not a folder; name a new folder")
    out.unlink()
    out.write_text("a file")
    refused("is not a folder; name a new folder")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((WORD_COUNT,), 2, "Missing option '-o DIR', or '--check'"),
        ((WORD_COUNT, "--check", "-o", "x"), 2, "--check takes no -o DIR"),
        (("gone.py", "--check"), 2, "there is no file gone.py"),
        ((WORD_COUNT, "--check", "-c", "topology.workers=many"), 2, "topology.workers"),
        ((WORD_COUNT, "--check", "-r", "gone.txt"), 2, "gone.txt"),
        ((WORD_COUNT, "--check", "-r", "local.txt"), 1, "names something on this machine"),
    ],
)
def test_errors_say_what_was_given(
    arguments: tuple[Any, ...], code: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "local.txt").write_text("./my_package\n")
    done = invoke(*arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["local.txt"]


@pytest.mark.parametrize("kind", ["flux", "streamparse", "module"])
def test_what_run_and_submit_take_is_compiled_and_found_again(kind: str, tmp_path: Path) -> None:
    """The topology is loaded from the unpacked archive, in a folder with a module of the same name."""
    project = tmp_path / "project"
    project.mkdir()
    target, components = {
        "flux": ("diamond.yaml", ""),
        "streamparse": ("words_topology.py", ""),
        "module": ("words.job", "split"),
    }[kind]
    if kind == "flux":
        for file in (UNIT / "flux" / "files").glob("*.*"):
            (project / file.name).write_bytes(file.read_bytes())
    elif kind == "streamparse":
        (project / target).write_bytes((UNIT / "streamparse" / target).read_bytes())
    else:
        (project / "words").mkdir()
        (project / "words" / "__init__.py").touch()
        (project / "words" / "job.py").write_bytes(WORD_COUNT.read_bytes())
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    compiled = subprocess.run(
        [sys.executable, "-m", "storm_on_spark.cli", "compile", target, "-o", str(tmp_path / "out"), "--quiet"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert compiled.returncode == 0, compiled.stderr
    unpacked = tmp_path / "unpacked"
    zipfile.ZipFile(tmp_path / "out" / "job.zip").extractall(unpacked)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "words").mkdir(parents=True)
    (elsewhere / "words" / "__init__.py").write_text("raise RuntimeError('another module of that name')")
    code = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from storm_on_spark.artifact.start import loaded\n"
        "target = loaded(Path(sys.argv[1]), json.loads(Path(sys.argv[1], 'job.json').read_text())['entry'])\n"
        "print(*sorted(target.topology(target.conf).components))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(unpacked)],
        cwd=elsewhere,
        env={**environment, "PYTHONPATH": str(unpacked / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert done.stdout.split() == sorted(plan["components"])
    assert components in done.stdout


def test_the_program_finds_the_archive_where_spark_has_unpacked_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "__file__", str(tmp_path / "main.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=r"add --archives job\.zip#storm_job"):
        program.main()
    (tmp_path / "storm_job").mkdir()
    (tmp_path / "storm_job" / "job.json").write_text('{"format": 1, "python": "2.7"}')
    with pytest.raises(SystemExit, match=r"compiled with Python 2\.7, and this is Python 3"):
        program.main()


def test_the_program_refuses_an_archive_that_is_not_the_manifests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "__file__", str(tmp_path / "main.py"))
    (tmp_path / "job.zip").write_bytes(b"half of it")
    (tmp_path / "manifest.json").write_text(json.dumps({"files": {"job.zip": {"sha256": "0" * 64}}}))
    with pytest.raises(SystemExit, match=r"job\.zip has SHA-256 .* and .*manifest\.json says 0{64}"):
        program.main()


def test_the_program_finds_its_folder_where_it_has_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = compile(Path(str(program.__file__)).read_text(), "cell", "exec")
    monkeypatch.setenv("STORM_SPARK_JOB", str(tmp_path))
    monkeypatch.chdir(tmp_path.parent)
    with pytest.raises(SystemExit, match=rf"there is neither {tmp_path}/job\.zip"):
        exec(code, {"__name__": "__main__"})
    monkeypatch.delenv("STORM_SPARK_JOB")
    with pytest.raises(SystemExit, match=rf"there is neither {tmp_path.parent}/job\.zip"):
        exec(code, {"__name__": "__main__"})


def test_what_a_killed_driver_has_unpacked_is_removed_by_a_later_start(written: Path, tmp_path: Path) -> None:
    code = (
        "import runpy, sys, time\n"
        "program = runpy.run_path(sys.argv[1])\n"
        "with program['_folder']() as (folder, archive):\n"
        "    print(folder, flush=True)\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(written / "main.py")],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdout is not None
        folder = Path(driver.stdout.readline().strip())
        remove_abandoned([tmp_path])
        assert (folder / "job.json").is_file(), "it is removed while the driver lives"
        driver.kill()
    assert folder.exists()
    remove_abandoned([tmp_path])
    assert not folder.exists()


def test_what_is_removed_before_the_driver_has_locked_it_is_unpacked_elsewhere(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        remove_abandoned([tmp_path])  # of a driver that starts just now
        flock(descriptor, how)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(program, "__file__", str(written / "main.py"))
    monkeypatch.setattr(fcntl, "flock", late)
    with vars(program)["_folder"]() as (folder, _):
        assert {"job.json", "owner.lock"} <= {path.name for path in folder.iterdir()}
    assert not folder.exists()
