"""What a topology requires is installed once, and fits what the driver itself runs on."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy
import pytest

from storm_on_spark.cluster.code.distributor import Peers, make_distributor
from storm_on_spark.cluster.errors import CodeError
from storm_on_spark.cluster.supervisor.code import CodeStore


@pytest.fixture
def store(tmp_path: Path) -> CodeStore:
    return CodeStore(tmp_path, make_distributor({"storm.local.dir": str(tmp_path / "local")}, Peers()))


def wheel(folder: Path, name: str, version: str) -> None:
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", f"version = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


def test_requirements_are_installed_once(store: CodeStore, tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "helper_of_a_topology", "1.2")
    requirements = f"--no-index\n--find-links {tmp_path / 'wheels'}\nhelper_of_a_topology==1.2\n".encode()
    folder = store.installed(requirements)
    assert folder is not None
    assert (folder / "helper_of_a_topology.py").read_text() == "version = '1.2'\n"
    (tmp_path / "wheels").rename(tmp_path / "away")
    assert store.installed(requirements) == folder
    assert [path.name for path in (tmp_path / "packages").iterdir()] == [folder.name], "scratch is left"


def test_what_can_not_be_installed_says_why(store: CodeStore, tmp_path: Path) -> None:
    with pytest.raises(CodeError, match=r"can't be installed: .*surely_not_there"):
        store.installed(b"--no-index\nsurely_not_there\n")
    # Another version of what Spark's Python side needs would break the driver, not only the topology.
    wheel(tmp_path / "wheels", "numpy", "0.1")
    with pytest.raises(CodeError, match="can't be installed"):
        store.installed(f"--no-index\n--find-links {tmp_path / 'wheels'}\nnumpy==0.1\n".encode())
    assert numpy.__version__ != "0.1"


@pytest.mark.parametrize("requirements", [None, b"", b"\n# nothing\n  # at all\n"])
def test_nothing_required_is_nothing_installed(store: CodeStore, tmp_path: Path, requirements: bytes | None) -> None:
    assert store.installed(requirements) is None
    assert not (tmp_path / "packages").exists()
