from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from codekit import TOPOLOGY, manifest_of

from storm_on_spark.cluster.code.packing import archive, collect
from storm_on_spark.cluster.code.packing.bundle import Packed, Unpacked, pack, unpack
from storm_on_spark.cluster.code.packing.imports import beside, imported_names
from storm_on_spark.cluster.code.packing.requirements import Requirements
from storm_on_spark.cluster.errors import CodeError


def tree(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def names(packed: Packed) -> list[str]:
    (code,) = [path for path in packed.files if path.name == "code.zip"]
    with zipfile.ZipFile(code) as opened:
        return sorted(opened.namelist())


def packed(target: str | Path, out: Path, **more: object) -> Packed:
    return pack(str(target), out, conf={}, **more)  # type: ignore[arg-type]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder.resolve()


# --- a file of its own ----------------------------------------------------------------------------------------


def test_a_file_brings_what_it_imports_from_beside_it_and_no_more(there: Path, out: Path) -> None:
    tree(
        there,
        {
            "words.py": "import os, json\nimport splitting\nfrom shared.text import clean\nimport numpy as np\n",
            "splitting.py": "def f():\n    from counting import count\n",
            "counting.py": "import words\n",
            "shared/__init__.py": "",
            "shared/text.py": "from . import more\n",
            "shared/more.py": "",
            "shared/words.txt": "a\n",
            "unused.py": "raise SystemExit\n",
            "data/x.csv": "1",
        },
    )
    done = packed("words.py:build", out)
    assert names(done) == [
        *("counting.py", "shared/__init__.py", "shared/more.py", "shared/text.py", "shared/words.txt"),
        *("splitting.py", "words.py"),
    ]
    assert done.entry == "words.py:build"
    assert done.packed == ("words.py", "shared/", "splitting.py", "counting.py")
    assert done.left_out == ()


def test_modules_that_are_named_in_calls_and_namespace_packages(there: Path, out: Path) -> None:
    tree(
        there,
        {
            "words.py": (
                "import importlib\nimportlib.import_module('late')\n__import__('later')\n"
                "from parts.deep.one import f\nimport parts.two, parts.none\nfrom parts import three as x\n"
                "from parts.deep import *\nimport yaml\n"
            ),
            "late.py": "",
            "later.py": "",
            "parts/deep/one.py": "",
            "parts/two.py": "",
            "parts/three/__init__.py": "",
            "parts/three/inside.py": "",
            "parts/unused.py": "",
            # An installed package goes before a folder that happens to have its name.
            "yaml/notes.py": "",
        },
    )
    assert names(packed("words.py", out)) == [
        *("late.py", "later.py", "parts/deep/one.py", "parts/three/__init__.py", "parts/three/inside.py"),
        *("parts/two.py", "words.py"),
    ]


def test_a_file_may_shadow_an_installed_module_but_not_what_every_host_has(there: Path, out: Path) -> None:
    tree(
        there,
        {
            "words.py": "import yaml, sys, storm_on_spark, pyspark\n",
            "yaml.py": "",
            "sys.py": "",
            "storm_on_spark/__init__.py": "",
            "pyspark.py": "",
        },
    )
    assert names(packed("words.py", out)) == ["words.py", "yaml.py"]


def test_a_link_is_packed_as_what_it_leads_to(there: Path, out: Path, tmp_path: Path) -> None:
    tree(tmp_path / "elsewhere", {"helper.py": "x = 1\n"})
    tree(there, {"words.py": "import helper\n"})
    (there / "helper.py").symlink_to(tmp_path / "elsewhere" / "helper.py")
    assert names(packed(there / "words.py", out)) == ["helper.py", "words.py"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("missing.py", "there is no file missing.py"),
        ("missing", "there is no file and no module missing: missing is not there"),
        ("no-name", "there is no file no-name, and no module can have that name"),
        ("os.missing", "there is no file and no module os.missing: missing is not there"),
        ("broken.py", "broken.py:1 can't be read as Python"),
        ("folder", "folder is a folder, but no package: it has no __init__.py; name a file in it: a.py, b.py"),
        ("folder.x:y:z", "there is no file folder.x:y, and no module"),
        ("storm_on_spark.api", "belongs to storm_on_spark, which is already installed on a cluster; copy the file"),
        ("math", "math is .*, no Python file|there is no file and no module math"),
        ("bad.zip", "bad.zip is not a readable archive"),
    ],
)
def test_what_can_not_be_packed(there: Path, out: Path, target: str, message: str) -> None:
    tree(there, {"broken.py": "def", "folder/a.py": "", "folder/b.py": "", "folder/_c.py": "", "bad.zip": "no"})
    with pytest.raises(CodeError, match=message):
        packed(target, out)
    assert not out.exists()


# --- packages -------------------------------------------------------------------------------------------------

PACKAGE = {
    "app/__init__.py": "",
    "app/topologies/__init__.py": "",
    "app/topologies/words.py": "from app.text import f\nimport helper\n",
    "app/text.py": "import beside\n",
    "app/data.json": "{}",
    "app/run.sh": "#!/bin/sh\n",
    "app/__pycache__/text.cpython-311.pyc": "x",
    "app/old.pyc": "x",
    "app/.git/config": "x",
    "app/.env": "SECRET=1",
    "app/venv/pyvenv.cfg": "",
    "app/venv/lib/big.py": "",
    "beside.py": "",
    "app/topologies/helper.py": "",
    "unused.py": "",
}
TAKEN = [
    *("app/__init__.py", "app/data.json", "app/run.sh", "app/text.py", "app/topologies/__init__.py"),
    *("app/topologies/helper.py", "app/topologies/words.py", "beside.py"),
]


@pytest.mark.parametrize(
    ("target", "entry"),
    [
        ("app/topologies/words.py", "app/topologies/words.py"),
        ("app/topologies/words.py:make", "app/topologies/words.py:make"),
        ("app.topologies.words", "app.topologies.words"),
        ("app.topologies.words:make", "app.topologies.words:make"),
        ("app/topologies", "app.topologies"),
        ("app", "app"),
        ("./app/:make", "app:make"),
    ],
)
def test_a_file_in_a_package_brings_the_whole_package(there: Path, out: Path, target: str, entry: str) -> None:
    tree(there, PACKAGE)
    (there / "app" / "run.sh").chmod(0o755)
    done = packed(target, out)
    assert done.entry == entry
    assert names(done) == TAKEN
    assert done.left_out == (
        f"{there}/app/.env is left out: hidden files, such as .git and .env, are not packed.",
        f"{there}/app/.git is left out: hidden files, such as .git and .env, are not packed.",
        f"{there}/app/venv is left out: a virtual environment; name what it has in a requirements file.",
    )
    code = unpack(out, manifest_of(out), out.parent / "code")
    assert os.access(code.folder / "app/run.sh", os.X_OK), "programs that a bolt starts can be started"
    assert code.target == (str(code.folder / entry) if ".py" in entry else entry)


def test_a_module_in_a_package_without_init(there: Path, out: Path) -> None:
    tree(there, {"jobs/words.py": "import jobs.other\n", "jobs/other.py": "", "jobs/unused.py": ""})
    done = packed("jobs.words:topology", out)
    assert (names(done), done.entry) == (["jobs/other.py", "jobs/words.py"], "jobs.words:topology")


def test_links_out_of_the_package_and_what_is_no_file_are_left_out(there: Path, out: Path, tmp_path: Path) -> None:
    tree(there, {"app/__init__.py": "", "app/real.py": ""})
    tree(tmp_path, {"secret": "x"})
    (there / "app" / "inside.py").symlink_to("real.py")
    (there / "app" / "outside").symlink_to(tmp_path / "secret")
    (there / "app" / "dangling").symlink_to("nowhere")
    (there / "app" / "loop").symlink_to(".", target_is_directory=True)
    os.mkfifo(there / "app" / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(there / "app" / "socket"))
        done = packed("app", out)
    assert names(done) == ["app/__init__.py", "app/inside.py", "app/real.py"]
    left = {sentence.split(" is left out: ")[0].rpartition("/")[2] for sentence in done.left_out}
    assert left == {"outside", "dangling", "loop", "pipe", "socket"}


def test_files_beyond_a_bound_are_left_out_and_too_much_is_refused(
    there: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "MAX_FILE_BYTES", 1 << 20)
    monkeypatch.setattr(collect, "MAX_TOTAL_BYTES", 3 << 20)
    tree(there, {"app/__init__.py": "", "app/model.bin": bytes((2 << 20) + 1), "big.py": bytes(2 << 20)})
    done = packed("app", out)
    assert names(done) == ["app/__init__.py"]
    assert done.left_out == (f"{there}/app/model.bin is left out: 2 MiB; a file may have 1 MiB. Put data elsewhere.",)
    with pytest.raises(CodeError, match=r"big\.py itself can't be packed: .*big\.py is left out: 2 MiB"):
        packed("big.py", there / "other")
    with pytest.raises(CodeError, match=r"big itself can't be packed: .*big\.py is left out: 2 MiB"):
        packed("big", there / "other")
    tree(there, {f"app/{number}.bin": bytes(1 << 20) for number in range(4)})
    with pytest.raises(CodeError, match="with it there are 4 files of 4 MiB; a topology may have 20,000 of 3 MiB"):
        packed("app", there / "other")


def test_files_with_names_that_no_archive_should_have(there: Path, out: Path) -> None:
    tree(there, {"app/__init__.py": "", "app/a\\b.py": "", "app/c\nd": ""})
    done = packed("app", out)
    assert names(done) == ["app/__init__.py"]
    assert len(done.left_out) == 2


# --- archives -------------------------------------------------------------------------------------------------


def zipped(path: Path, files: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("given", "entry"),
    [
        ("", "app"),
        (":app", "app"),
        (":make", "app:make"),
        (":app.words", "app.words"),
        (":app.words:make", "app.words:make"),
    ],
)
@pytest.mark.parametrize("name", ["app-1.0-py3-none-any.whl", "app.zip"])
def test_a_wheel_is_taken_whole(there: Path, out: Path, name: str, given: str, entry: str) -> None:
    files = {"app/__init__.py": "", "app/words.py": "", "app/data.txt": "x", "app-1.0.dist-info/METADATA": "Name: app"}
    zipped(there / name, files)
    done = packed(f"{name}{given}", out)
    assert done.entry == entry
    assert names(done) == sorted(files)
    assert done.packed == (name,)
    assert (unpack(out, manifest_of(out), there / "code").folder / "app/data.txt").read_text() == "x"


def test_archives_whose_topology_is_not_clear(there: Path, out: Path) -> None:
    zipped(there / "two.zip", {"a.py": "", "b/__init__.py": ""})
    with pytest.raises(CodeError, match=r"name the module with the topology, as two\.zip:package\.module; it has a, b"):
        packed("two.zip", out)
    with pytest.raises(CodeError, match=r"two\.zip: there is no module c\.d in it"):
        packed("two.zip:c.d", out)
    zipped(there / "evil.zip", {"a.py": "", "../b.py": ""})
    with pytest.raises(CodeError, match=r"evil\.zip: entry '\.\./b\.py' leaves its folder"):
        packed("evil.zip", out)
    with pytest.raises(CodeError, match=r"there is no file and no module gone"):
        packed("gone.zip", out)


# --- what else is packed --------------------------------------------------------------------------------------


def test_packing_imports_nothing_and_gives_the_same_bytes_every_time(there: Path, tmp_path: Path) -> None:
    tree(there, {"boom.py": "import bang\nraise RuntimeError\n", "bang.py": "1/0\n"})
    before = set(sys.modules)
    first = packed("boom.py", tmp_path / "1")
    assert set(sys.modules) == before
    shutil.copytree(there, tmp_path / "copy")
    for path in (tmp_path / "copy").iterdir():
        os.utime(path, (1, 1))
        path.chmod(0o640)
    second = packed(tmp_path / "copy" / "boom.py", tmp_path / "2")
    assert [path.read_bytes() for path in first.files] == [path.read_bytes() for path in second.files]
    assert {path.stat().st_mode & 0o777 for path in first.files} == {0o600}


def test_configuration_plan_and_requirements(there: Path, out: Path) -> None:
    tree(there, {"words.py": "", "requirements.txt": "numpy==2.0\nrequests[security] >= 2 # a comment\n"})
    conf = {"topology.workers": 2, "my": {"deep": [1, None, "ä"]}}
    done = pack("words.py", out, conf=conf, plan={"stages": []}, requirements=Requirements(there / "requirements.txt"))
    assert [path.name for path in done.files] == [
        *("code.zip", "conf.json", "plan.json", "requirements.txt", "topology.json"),
    ]
    assert json.loads((out / "plan.json").read_text()) == {"stages": []}
    code = unpack(out, manifest_of(out), there / "code")
    assert isinstance(code, Unpacked)
    assert code.conf == conf
    assert code.requirements == (there / "requirements.txt").read_bytes()
    assert code.python == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert "deep" not in repr(code), "a configuration may hold secrets"
    assert manifest_of(out).topology_id == TOPOLOGY


@pytest.mark.parametrize(
    "line",
    ["-r other.txt", "  -e .", "./local", "../x", "/abs/x.whl", "-c c.txt", "x @ file:///x", "--find-links=."],
)
def test_requirements_that_only_this_machine_has(there: Path, out: Path, line: str) -> None:
    tree(there, {"words.py": "", "requirements.txt": f"numpy\n{line}\n"})
    with pytest.raises(CodeError, match=r"requirements\.txt:2: .* names something on this machine"):
        packed("words.py", out, requirements=Requirements(there / "requirements.txt"))


@pytest.mark.parametrize(
    "line",
    [
        *(
            "streamparse",
            "Streamparse[x]>=5 # always",
            "pystorm==3.1.4",
            "streamparse @ file:///x",
            "  streamparse;a==1",
        ),
        *("streamparse==5 \\\n  --hash=sha256:aa \\\n  --hash=sha256:bb", "-e git+https://h.org/x.git#egg=streamparse"),
        "git+https://h.org/Parsely/pystorm.git@main",
    ],
)
def test_lines_that_name_a_package_are_left_out(there: Path, line: str) -> None:
    others = "# streamparse\nstreamparse-extra\nmy_pystorm==1\nhttps://h.org/streamparse/redis.whl\nredis \\\n  <6\n"
    tree(there, {"requirements.txt": f"{line}\n{others}{line}"})
    assert Requirements(there / "requirements.txt", ("streamparse", "pystorm")).read().decode() == others


def test_other_mistakes(there: Path, out: Path) -> None:
    tree(there, {"words.py": "", "bin.txt": b"\xff"})
    with pytest.raises(CodeError, match=r"bin\.txt is not UTF-8 text"):
        packed("words.py", out, requirements=Requirements(there / "bin.txt"))
    with pytest.raises(CodeError, match=r"missing can't be read: No such file"):
        packed("words.py", out, requirements=Requirements(there / "missing"))
    with pytest.raises(CodeError, match=r"conf\.json: a value can't be written as JSON"):
        pack("words.py", out, conf={"x": object()})
    with pytest.raises(CodeError, match=r"conf\.json: [\d,]+ bytes; at most 1,048,576 are allowed"):
        pack("words.py", out, conf={"x": "y" * (1 << 20)})
    packed("words.py", out)
    with pytest.raises(CodeError, match="is not empty"):
        packed("words.py", out)


# --- imports --------------------------------------------------------------------------------------------------


def test_imported_names(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        "import a, b.c as d\nfrom e import f, g\nfrom h.i import *\nfrom . import j\nfrom .k import l\n"
        "try:\n    import m\nexcept ImportError:\n    m = None\n"
        "import_module('n.o'); import_module(name); print('p'); x.import_module('q')\n"
    )
    assert imported_names(path) == ["a", "b.c", "e.f", "e.g", "h.i", "m", "n.o", "q"]
    path.write_text("x = '\\d'\n")
    assert imported_names(path) == []
    path.write_bytes(b"\0")
    with pytest.raises(CodeError, match=r"x\.py.* can't be read as Python"):
        imported_names(path)
    assert beside("", [tmp_path]) is None
    assert beside("x", [tmp_path]) == path


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a/b.py", None),
        ("ä/日本.py", None),
        ("/etc/passwd", "is an absolute path"),
        ("../x", "leaves its folder"),
        ("a/../x", "leaves its folder"),
        ("a//b", "is not a plain path"),
        ("", "is not a plain path"),
        ("./a", "is not a plain path"),
        ("a/", "is not a plain path"),
        ("a\\..\\b", "has a backslash or a control character in its name"),
        ("a\nb", "has a backslash or a control character in its name"),
        ("a\x00b", "has a backslash or a control character in its name"),
        ("a\udcff", "has a backslash or a control character in its name"),
        ("x" * 256, "has too long a name"),
        ("/".join(["x"] * 41), "has too long a name"),
        ("/".join(["x" * 200] * 6), "has too long a name"),
    ],
)
def test_names_of_entries(name: str, problem: str | None) -> None:
    assert archive.name_problem(name) == problem


# --- what was packed is enough --------------------------------------------------------------------------------

_REPOSITORY = Path(__file__).parents[4]
_LOAD = """
import sys
from pathlib import Path
from storm_on_spark.launch.loader import load
folder, target = sys.argv[1:]
sys.path.insert(0, folder)
loaded = load(target)
assert Path(loaded.module.__file__).is_relative_to(folder), loaded.module.__file__
print(loaded.name, loaded.attribute)
"""


@pytest.mark.parametrize(
    ("target", "printed"),
    [
        ("jobs/word_count.py", "word-count"),
        ("jobs.word_count", "word-count"),
        ("app/topologies/words.py:make", "words make"),
        ("app.topologies.words:make", "words make"),
        ("app-1.whl:app.topologies.words:make", "words make"),
    ],
)
def test_what_was_packed_loads_elsewhere(
    there: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, printed: str
) -> None:
    files = {
        "app/__init__.py": "",
        "app/topologies/__init__.py": "",
        "app/topologies/words.py": "from app.text import f\nimport helper\nimport beside\nmake = f\n",
        "app/topologies/helper.py": "",
        "app/text.py": "def f(): pass\n",
        "beside.py": "",
        "helper.py": "",
    }
    tree(there, files)
    zipped(there / "app-1.whl", files)
    if target.startswith("jobs"):
        monkeypatch.chdir(_REPOSITORY)
    packed(target, out)
    code = unpack(out, manifest_of(out), tmp_path / "run" / "code")
    shutil.rmtree(there)
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, str(code.folder), code.target],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith(printed), done.stderr
