"""Archives and artifacts as an attacker would make them."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import stat
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from codekit import TOPOLOGY, manifest_of, metafile_of, same
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lengths import examples

from storm_on_spark.cluster.code import checksums
from storm_on_spark.cluster.code.checksums import (
    artifact_of,
    artifacts_of,
    check_artifacts,
    copy_verified,
    read_verified,
    verify,
)
from storm_on_spark.cluster.code.distributor import CodeDistributor, Metafile, Peers, make_distributor
from storm_on_spark.cluster.code.distributors.local import LocalFileSystemCodeDistributor
from storm_on_spark.cluster.code.packing import archive, bundle
from storm_on_spark.cluster.code.packing.bundle import TopologyFile, document, unpack
from storm_on_spark.cluster.errors import ChecksumError, CodeError
from storm_on_spark.cluster.records import ArtifactInfo, encode

Info = Callable[[zipfile.ZipInfo], None]

Member = tuple[zipfile.ZipInfo, bytes]
FORMAT = {"format": 1}


def entry(named: str) -> bytes:
    return encode(TopologyFile(entry=named, python="3"))


def member(name: str, content: bytes = b"x", mode: int = 0, change: Info | None = None) -> Member:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    if change is not None:
        change(info)
    return info, content


def zipped(*members: Member) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        for info, content in members:
            opened.writestr(info, content)
    return made.getvalue()


def extracted(content: bytes, folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    archive.extract(io.BytesIO(content), folder, "code.zip")
    return folder


def with_code(artifacts: Path, content: bytes) -> Path:
    (artifacts / "code.zip").write_bytes(content)
    return artifacts


# --- archives -------------------------------------------------------------------------------------------------


def test_an_ordinary_archive(tmp_path: Path) -> None:
    content = zipped(
        member("a.py", b"1", stat.S_IFREG | 0o4777), member("b/c/d.py", b"2"), member("e/", b"", stat.S_IFDIR | 0o755)
    )
    folder = extracted(content, tmp_path / "x")
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*")} == {"a.py", "b", "b/c", "b/c/d.py", "e"}
    assert (folder / "a.py").stat().st_mode & 0o7777 == 0o700, "to be executed, but not as somebody else"
    assert (folder / "b/c/d.py").stat().st_mode & 0o7777 == 0o600
    assert (folder / "b").stat().st_mode & 0o7777 == 0o700


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([member("../evil.py")], "leaves its folder"),
        ([member("a/../../evil.py")], "leaves its folder"),
        ([member("/etc/evil")], "is an absolute path"),
        ([member("a\\..\\evil.py")], "backslash"),
        ([member("a//b")], "is not a plain path"),
        ([member("a\nb")], "control character"),
        ([member("link", b"/etc/passwd", stat.S_IFLNK | 0o777)], "links, devices and the like are not allowed"),
        ([member("pipe", b"", stat.S_IFIFO | 0o666)], "links, devices and the like are not allowed"),
        ([member("null", b"", stat.S_IFCHR | 0o666)], "links, devices and the like are not allowed"),
        ([member("folder", b"", stat.S_IFDIR | 0o755)], "links, devices and the like are not allowed"),
        ([member("file/", b"", stat.S_IFREG | 0o644)], "links, devices and the like are not allowed"),
        ([member("folder/", b"content")], "at most"),
        ([member("a.py"), member("A.py")], "'A.py' is there twice, or again as 'a.py'"),
        ([member("e\u0301.py"), member("\u00e9.py")], "is there twice"),
        ([member("a"), member("a/b.py")], "'a' is a file and the folder of 'a/b.py'"),
        ([member("a.py", change=lambda i: setattr(i, "compress_type", zipfile.ZIP_BZIP2))], "another method"),
        ([member("a.py", change=lambda i: setattr(i, "compress_type", zipfile.ZIP_LZMA))], "another method"),
        ([member("x/" * 50 + "a.py")], "too long a name"),
    ],
)
def test_entries_that_are_refused(
    tmp_path: Path, members: list[Member], message: str, recwarn: pytest.WarningsRecorder
) -> None:
    with pytest.raises(CodeError, match=message):
        extracted(zipped(*members), tmp_path / "x")
    assert [path for path in tmp_path.rglob("*") if path.name != "x"] == [], "nothing is written before all is checked"


def test_the_same_name_twice(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        content = zipped(member("a.py", b"good"), member("a.py", b"evil"))
    with pytest.raises(CodeError, match=r"'a\.py' is there twice"):
        extracted(content, tmp_path / "x")


def test_a_name_that_readers_cut_at_different_places(tmp_path: Path) -> None:
    content = zipped(member("good.py?evil")).replace(b"good.py?evil", b"good.py\0evil")
    with pytest.raises(CodeError, match=r"entry 'good\.py\\x00evil' has a backslash or a control character"):
        extracted(content, tmp_path / "x")


def test_too_many_and_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_ENTRIES", 3)
    with pytest.raises(CodeError, match="4 entries; at most 3 are allowed"):
        extracted(zipped(*(member(f"{n}.py") for n in range(4))), tmp_path / "a")
    monkeypatch.setattr(archive, "MAX_FILE_BYTES", 1000)
    monkeypatch.setattr(archive, "MAX_TOTAL_BYTES", 1500)
    with pytest.raises(CodeError, match=r"entry 'a\.py' has 1,001 bytes; at most 1,000 are allowed"):
        extracted(zipped(member("a.py", bytes(1001))), tmp_path / "b")
    with pytest.raises(CodeError, match="its files have more than 1,500 bytes together"):
        extracted(zipped(member("a.py", bytes(1000)), member("b.py", bytes(1000))), tmp_path / "c")


def test_an_entry_that_is_larger_than_it_says(tmp_path: Path) -> None:
    """A bomb: 10 MB of zeros, which say that they are 10 bytes."""
    honest = zipped(member("a.py", bytes(10_000_000)))
    for checksum in (zlib.crc32(bytes(10_000_000)), zlib.crc32(bytes(10))):
        lying = honest.replace(struct.pack("<L", 10_000_000), struct.pack("<L", 10)).replace(
            struct.pack("<L", zlib.crc32(bytes(10_000_000))), struct.pack("<L", checksum)
        )
        folder = tmp_path / str(checksum)
        with contextlib.suppress(CodeError):
            extracted(lying, folder)
        assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 10


def test_an_encrypted_entry(tmp_path: Path) -> None:
    content = bytearray(zipped(member("a.py")))
    for magic, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(magic) + at] |= 1
    with pytest.raises(CodeError, match="is encrypted"):
        extracted(bytes(content), tmp_path / "x")


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"#!/bin/sh\n" + content,
        lambda content: content + b"x",
        lambda content: content[:-2] + b"\3\0abc",
        lambda content: content[:-1],
        lambda content: b"",
        lambda content: content + content,
        lambda content: content[:-22] + b"PK\6\7" + bytes(16) + content[-22:],
        lambda content: content[:-12] + struct.pack("<L", 0xFFFFFFFF) + content[-8:],
        lambda content: content[:-14] + struct.pack("<H", 7) + content[-12:],
        lambda content: bytes(len(content)),
    ],
)
def test_what_is_no_plain_archive(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(CodeError, match=r"is not an archive that packing a topology makes|is damaged"):
        extracted(change(zipped(member("a.py", b"x" * 100))), tmp_path / "x")


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damage_of_any_kind_is_one_error(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(zipped(member("a/b.py", b"x = 1\n" * 50), member("c.py", b"")))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.mktemp("damaged")
    try:
        archive.extract(io.BytesIO(bytes(content)), folder, "code.zip")
    except CodeError:
        pass
    finally:
        shutil.rmtree(folder)


@settings(max_examples=examples(100))
@given(name=st.text(min_size=1, max_size=40) | st.lists(st.sampled_from(["..", ".", "", "a", "b\\c"])).map("/".join))
def test_no_name_leads_out_of_the_folder(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    if archive.name_problem(name) is None:
        folder = Path("/code")
        assert Path(os.path.normpath(folder / name)).is_relative_to(folder)
        assert Path(os.path.normpath(folder / name)) != folder


# --- artifacts ------------------------------------------------------------------------------------------------


def test_unpacking(tmp_path: Path, artifacts: Path) -> None:
    code = unpack(artifacts, manifest_of(artifacts), tmp_path / "run" / "code")
    assert (code.folder, code.entry, code.requirements) == (tmp_path / "run" / "code", "words.py", None)
    assert (code.folder / "words.py").read_text().startswith("import noise")
    assert code.folder.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["code"]
    assert document(artifacts, manifest_of(artifacts), "plan.json") == {"stages": []}
    assert document(artifacts, manifest_of(artifacts), "requirements.txt") == {}
    with pytest.raises(CodeError, match="already exists"):
        unpack(artifacts, manifest_of(artifacts), tmp_path / "run" / "code")


@pytest.mark.parametrize("name", ["code.zip", "conf.json", "topology.json", "plan.json"])
def test_one_changed_byte(tmp_path: Path, artifacts: Path, name: str) -> None:
    manifest = manifest_of(artifacts)
    content = bytearray((artifacts / name).read_bytes())
    content[len(content) // 2] ^= 1
    (artifacts / name).write_bytes(content)
    with pytest.raises(ChecksumError, match=rf"{name}: [\d,]+ bytes with SHA-256 \w+; what was sent had"):
        verify(manifest, artifacts)
    use = document if name == "plan.json" else unpack
    with pytest.raises(ChecksumError):
        use(artifacts, manifest, name if use is document else tmp_path / "x")  # type: ignore[operator]
    assert not (tmp_path / "x").exists()


def test_what_is_exchanged_after_it_was_verified_is_not_used(
    tmp_path: Path, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between every check and the use of what was checked, the files are exchanged."""
    manifest = manifest_of(artifacts)
    evil = zipped(member("words.py", b"evil"))
    copy = bundle.copy_verified

    def then_exchange(folder: Path, info: ArtifactInfo, to: object) -> None:
        copy(folder, info, to)  # type: ignore[arg-type]
        with (artifacts / "code.zip").open("r+b") as file:
            file.write(evil)

    monkeypatch.setattr(bundle, "copy_verified", then_exchange)
    code = unpack(artifacts, manifest, tmp_path / "x")
    assert (code.folder / "words.py").read_text().startswith("import noise")


def test_links_and_pipes_in_place_of_artifacts(tmp_path: Path, artifacts: Path) -> None:
    manifest = manifest_of(artifacts)
    conf = artifacts / "conf.json"
    conf.rename(tmp_path / "conf.json")
    conf.symlink_to(tmp_path / "conf.json")
    with pytest.raises(CodeError, match=r"conf\.json can't be read: Too many levels of symbolic links"):
        unpack(artifacts, manifest, tmp_path / "x")
    with pytest.raises(CodeError, match="can't be read"):
        artifacts_of(artifacts)
    conf.unlink()
    os.mkfifo(conf)
    with pytest.raises(CodeError, match=r"conf\.json is not a regular file"):
        unpack(artifacts, manifest, tmp_path / "x")
    conf.unlink()
    with pytest.raises(CodeError, match=r"conf\.json can't be read: No such file"):
        verify(manifest, artifacts)


def test_a_file_that_grows_is_read_no_further_than_allowed(tmp_path: Path) -> None:
    path = tmp_path / "conf.json"
    path.write_bytes(b"{}")
    info = artifact_of(path)
    assert read_verified(tmp_path, info) == b"{}"
    os.truncate(path, 1 << 33)
    with pytest.raises(ChecksumError, match="more than the 2 bytes that it may have"):
        copy_verified(tmp_path, info, None)
    with pytest.raises(ChecksumError, match="more than the 1,048,576 bytes"):
        artifact_of(path)


GOOD = "0" * 64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "../../evil"}, r"there is no artifact '\.\./\.\./evil'"),
        ({"size": -1}, "has -1 bytes"),
        ({"size": 1 << 40}, r"has 1,099,511,627,776 bytes; at most 268,435,456 are allowed"),
        ({"sha256": "0" * 63}, "is not a SHA-256"),
        ({"sha256": "G" * 64}, "is not a SHA-256"),
        ({"sha256": GOOD + "\n"}, "is not a SHA-256"),
        ({"name": "conf.json"}, "an artifact is there twice"),
        ({"name": "plan.json"}, r"without code\.zip it is not a topology's code"),
    ],
)
def test_manifests_that_are_refused(tmp_path: Path, artifacts: Path, change: dict[str, object], message: str) -> None:
    names = ("code.zip", "conf.json", "topology.json")
    infos = [ArtifactInfo(name=name, size=0, sha256=GOOD) for name in names]
    assert check_artifacts(infos, "x") == tuple(infos)
    wrong = (msgspec.structs.replace(infos[0], **change), *infos[1:])
    manifest = msgspec.structs.replace(manifest_of(artifacts), artifacts=wrong)
    with pytest.raises(CodeError, match=message):
        unpack(artifacts, manifest, tmp_path / "x")
    with pytest.raises(CodeError, match=message):
        verify(manifest, artifacts)
    text = msgspec.json.encode({**FORMAT, "location": "x", "artifacts": wrong}).decode()
    with pytest.raises(CodeError, match="metafile of"):
        Metafile.of(text, TOPOLOGY)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("topology.json", b"{}", "topology.json: this TopologyFile has format version None"),
        ("topology.json", b"[]", "no TopologyFile"),
        ("topology.json", entry("../words.py"), "entry '../words.py' is not in it"),
        ("topology.json", entry("/etc/x.py"), "entry '/etc/x.py' is not in it"),
        ("topology.json", entry("other.py"), "entry 'other.py' is not in it"),
        ("topology.json", entry("a..b"), "entry 'a..b' is not in it"),
        ("topology.json", entry(""), "entry '' is not in it"),
        ("topology.json", entry("words:a b"), "'a b' is not the name of an attribute"),
        ("conf.json", b"[1]", "conf.json: no JSON object"),
        ("conf.json", b"\xff", "conf.json: no JSON object"),
        ("conf.json", b'{"a":' * 5000, "conf.json: no JSON object"),
        ("code.zip", b"PK", "code.zip is not an archive that packing a topology makes"),
    ],
)
def test_artifacts_with_the_right_checksum_but_wrong_content(
    tmp_path: Path, artifacts: Path, name: str, content: bytes, message: str
) -> None:
    (artifacts / name).write_bytes(content)
    with pytest.raises(CodeError, match=message.replace(".", r"\.")):
        unpack(artifacts, manifest_of(artifacts), tmp_path / "run" / "x")
    assert not (tmp_path / "run").exists() or list((tmp_path / "run").iterdir()) == []


def test_nothing_is_imported_before_it_was_verified(tmp_path: Path, artifacts: Path) -> None:
    with_code(artifacts, zipped(member("words.py", b"raise SystemExit(7)"), member("sitecustomize.py", b"1/0")))
    before = set(sys.modules)
    code = unpack(artifacts, manifest_of(artifacts), tmp_path / "x")
    assert set(sys.modules) == before
    done = subprocess.run([sys.executable, "-c", "import words"], cwd=code.folder, capture_output=True)
    assert done.returncode == 7


def test_a_folder_that_is_no_topology(tmp_path: Path) -> None:
    with pytest.raises(CodeError, match=r"without code\.zip and topology\.json and conf\.json it is no"):
        artifacts_of(tmp_path)
    (tmp_path / "x.txt").touch()
    with pytest.raises(CodeError, match=r"there is no artifact 'x\.txt'"):
        artifact_of(tmp_path / "x.txt")
    assert checksums.REQUIRED


def test_checksums_are_what_others_say_they_are(artifacts: Path) -> None:
    for info in artifacts_of(artifacts):
        content = (artifacts / info.name).read_bytes()
        assert (info.size, info.sha256) == (len(content), hashlib.sha256(content).hexdigest())


# --- distributors ---------------------------------------------------------------------------------------------


class Own(LocalFileSystemCodeDistributor):
    """A distributor of somebody's own."""

    name = "own"


@pytest.mark.parametrize(
    "named",
    [
        None,
        "local",
        "org.apache.storm.codedistributor.LocalFileSystemCodeDistributor",
        "backtype.storm.codedistributor.LocalFileSystemCodeDistributor",
        "storm_on_spark.cluster.code.distributors.local:LocalFileSystemCodeDistributor",
    ],
)
def test_the_local_distributor_has_many_names(tmp_path: Path, artifacts: Path, named: str | None) -> None:
    made = make_distributor({"storm.codedistributor.class": named, "storm.local.dir": str(tmp_path / "a")})
    assert type(made) is LocalFileSystemCodeDistributor
    made.upload(artifacts, TOPOLOGY)
    assert same(tmp_path / "a" / "nimbus" / "code" / TOPOLOGY, artifacts)
    made.close()


def test_a_distributor_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "own_distributor", sys.modules[__name__])
    peers = Peers("me:1")
    made = make_distributor(
        {"storm.codedistributor.class": "own_distributor:Own", "storm.local.dir": str(tmp_path)}, peers
    )
    assert isinstance(made, Own)
    assert made.peers is peers
    made.close()


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("ftp", "there is no code distributor 'ftp', only local, hdfs, delta and your own classes"),
        ("missing_module:X", "'missing_module:X' can't be imported"),
        ("os:missing", "'os:missing' can't be imported"),
        ("os:getcwd", "'os:getcwd' is not a subclass of CodeDistributor"),
        ("builtins:dict", "'builtins:dict' is not a subclass of CodeDistributor"),
    ],
)
def test_distributors_that_there_are_not(named: str, message: str) -> None:
    with pytest.raises(CodeError, match=message):
        make_distributor({"storm.codedistributor.class": named})


def test_a_local_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CodeError, match=r"storm\.local\.dir: .*file/nimbus/code can't be made: File exists"):
        make_distributor({"storm.local.dir": str(tmp_path / "file")})


def test_a_metafile_survives_its_text(artifacts: Path) -> None:
    text = metafile_of(artifacts)
    assert Metafile.of(text, TOPOLOGY).to_text() == text
    assert issubclass(LocalFileSystemCodeDistributor, CodeDistributor)
