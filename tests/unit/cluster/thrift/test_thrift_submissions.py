"""Uploads and topologies over Thrift: bounded, typed, and packed as what was sent."""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cluster_records
import pytest

from storm_on_spark.api.errors import InvalidTopologyError
from storm_on_spark.cluster.code.checksums import CODE
from storm_on_spark.cluster.code.packing.bundle import unpack
from storm_on_spark.cluster.errors import ChecksumError, CodeError, LimitError
from storm_on_spark.cluster.nimbus.accepting.inbox import Inbox
from storm_on_spark.cluster.nimbus.accepting.submission import SubmitRequest
from storm_on_spark.cluster.plan_summary import MAX_TASKS
from storm_on_spark.cluster.thrift import uploads as uploads_module
from storm_on_spark.cluster.thrift.interface import interface
from storm_on_spark.cluster.thrift.submissions import description, submit, submitted
from storm_on_spark.cluster.thrift.uploads import Uploads
from storm_on_spark.launch.loader import load
from storm_on_spark.streamparse.submitted import build_submitted

BOLT = """
from streamparse import Bolt

class Count(Bolt):
    outputs = ["word", "count"]
"""


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path / "inbox", expiration_secs=60)


def files(inbox: Inbox, tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "inbox").rglob("*") if path.is_file()]


def uploaded(uploads: Uploads, inbox: Inbox, content: bytes) -> str:
    location = uploads.begin(inbox)
    for at in range(0, len(content), 100):
        uploads.add(inbox, location, content[at : at + 100])
    uploads.finish(inbox, location)
    return location


def test_an_upload_is_what_was_sent(inbox: Inbox, tmp_path: Path) -> None:
    uploads, content = Uploads(), bytes(range(256)) * 5
    location = uploaded(uploads, inbox, content)
    with uploads.taking(inbox, location) as path:
        assert path.read_bytes() == content
        assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(CodeError, match="is finished"):
        uploads.add(inbox, location, b"more")
    path.write_bytes(content + b"!")
    with pytest.raises(ChecksumError, match="has changed"), uploads.taking(inbox, location):
        pass
    uploads.remove(inbox, location)
    assert files(inbox, tmp_path) == []
    with pytest.raises(CodeError, match="not an upload of this Nimbus"), uploads.taking(inbox, location):
        pass


def test_uploads_are_bounded(inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uploads = Uploads(limit=1000)
    location = uploads.begin(inbox)
    uploads.add(inbox, location, b"x" * 1000)
    with pytest.raises(CodeError, match="not finished"), uploads.taking(inbox, location):
        pass
    with pytest.raises(LimitError, match="more than the 1,000 bytes"):
        uploads.add(inbox, location, b"x")
    assert files(inbox, tmp_path) == []
    monkeypatch.setattr(uploads_module, "MOST_UPLOADS", 2)
    uploads.begin(inbox)
    uploads.begin(inbox)
    with pytest.raises(LimitError, match="2 uploads already wait"):
        uploads.begin(inbox)


@pytest.mark.parametrize("location", ["", "/etc/passwd", "stormjar-../../x.jar", f"stormjar-{'0' * 32}.jar"])
def test_a_location_is_no_path(inbox: Inbox, location: str) -> None:
    for ask in (
        lambda: Uploads().add(inbox, location, b""),
        lambda: Uploads().finish(inbox, location),
        lambda: Uploads().remove(inbox, location),
    ):
        with pytest.raises(CodeError, match="is not an upload of this Nimbus"):
            ask()


def test_an_upload_that_waits_too_long_goes(tmp_path: Path) -> None:
    now = [0.0]
    inbox, uploads = Inbox(tmp_path / "inbox", 60, now=lambda: now[0]), Uploads()
    location = uploads.begin(inbox)
    now[0] = 1e12
    inbox.expire()
    assert files(inbox, tmp_path) == []
    with pytest.raises(CodeError, match="waited too long"):
        uploads.add(inbox, location, b"x")


def shell(command: str, script: str) -> Any:
    return interface().ComponentObject(shell=interface().ShellComponent(command, script))


def java(name: str, *arguments: Any) -> Any:
    return interface().ComponentObject(java_object=interface().JavaObject(name, list(arguments)))


def common(inputs: dict[Any, Any] | None = None, tasks: int = 1, conf: str | None = None, **streams: Any) -> Any:
    types = interface()
    found = {name: types.StreamInfo(output_fields=fields, direct=False) for name, fields in streams.items()}
    return types.ComponentCommon(inputs=inputs or {}, streams=found, parallelism_hint=tasks, json_conf=conf)


def topology(**changes: Any) -> Any:
    types = interface()
    source = types.GlobalStreamId(componentId="words", streamId="default")
    by_word = types.Grouping(fields=["word"])
    parts = {
        "spout_object": shell("node", "words.js"),
        "bolt_object": shell("/venv/bin/streamparse_run", "-s json count_words.Count"),
        "spout": common(default=["word"]),
        "bolt": common({source: by_word}, 2, '{"topology.tick.tuple.freq.secs": 5}', default=["word", "count"]),
        **changes,
    }
    return types.StormTopology(
        spouts={"words": types.SpoutSpec(spout_object=parts["spout_object"], common=parts["spout"])},
        bolts={"count": types.Bolt(bolt_object=parts["bolt_object"], common=parts["bolt"])},
        state_spouts={},
    )


class Leader:
    """A Nimbus that takes topologies in by unpacking them."""

    def __init__(self, inbox: Inbox, folder: Path) -> None:
        self.inbox, self.folder, self.user = inbox, folder, "me"
        self.submitted: list[SubmitRequest] = []

    def fence(self) -> None:
        pass

    def artifact(self, topology_id: str, name: str) -> Path:
        return self.folder.parent / f"kept-{name}"

    def snapshot(self) -> Any:
        return SimpleNamespace(storms={request.name for request in self.submitted})

    def submit(self, request: SubmitRequest) -> str:
        with self.inbox.using(request.key) as folder:
            manifest = cluster_records.manifest(request.name, artifacts=request.artifacts)
            shutil.copy(folder / CODE, self.artifact(request.name, CODE))
            self.unpacked = unpack(folder, manifest, self.folder)
        self.submitted.append(request)
        return request.name


def jar(tmp_path: Path, **contents: str) -> bytes:
    with zipfile.ZipFile(tmp_path / "a.jar", "w") as archive:
        for name, content in contents.items():
            archive.writestr(name.replace("__", "."), content)
    return (tmp_path / "a.jar").read_bytes()


def test_a_submission_becomes_a_topology(inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leader: Any = Leader(inbox, tmp_path / "code")
    uploads = Uploads()
    content = {"META-INF/MANIFEST__MF": "", "resources/count_words__py": BOLT, "resources/words__js": "// words"}
    location = uploaded(uploads, inbox, jar(tmp_path, **content))
    conf = {"topology.original_name": "w", "topology.workers": 2, "virtualenv_root": "", "my.password": "secret"}
    assert submit(leader, uploads, "w", location, conf, topology(), active=False) == "w"
    (request,) = leader.submitted
    assert (request.initial_status, request.owner, "my.password" in request.conf) == ("INACTIVE", "me", False)
    assert leader.unpacked.conf == {key: value for key, value in conf.items() if key != "topology.original_name"}
    assert files(inbox, tmp_path) == []
    assert description(submitted(leader, "w")) == description(topology())

    monkeypatch.setattr(sys, "path", [str(leader.unpacked.folder), *sys.path])
    try:
        made = load(leader.unpacked.target).topology({})
    finally:
        for name in ("count_words", "storm_thrift_topology"):
            sys.modules.pop(name, None)
    kinds = {name: type(found.component).__name__ for name, found in made.components.items()}
    assert kinds == {"words": "ShellSpout", "count": "PystormBolt"}
    assert (made.components["count"].parallelism, made.components["words"].parallelism) == (2, 1)
    assert (leader.unpacked.folder / "resources" / "words.js").read_text() == "// words"


WRONG: dict[str, tuple[Callable[[Any], dict[str, Any]], str]] = {
    "java with bytes": (
        lambda types: {"bolt_object": java("a.B", types.JavaObjectArg(binary_arg=b"x"))},
        'component "count" has a binary argument',
    ),
    "java with too much": (
        lambda types: {"bolt_object": java("a.B", *[types.JavaObjectArg(long_arg=1)] * 101)},
        "has more than 100 arguments",
    ),
    "serialized": (lambda types: {"bolt_object": types.ComponentObject(serialized_java=b"x")}, "serialized Java"),
    "nothing": (lambda types: {"spout_object": types.ComponentObject()}, "serialized Java"),
    "no common": (lambda types: {"spout": None}, "no spout_object or no common"),
    "tasks": (lambda types: {"bolt": common(tasks=MAX_TASKS + 1)}, "parallelism of"),
    "no tasks": (lambda types: {"bolt": common(tasks=0)}, "parallelism of 0"),
    "conf": (lambda types: {"bolt": common(conf="[1]")}, "json_conf: expected a JSON object, given list"),
    "conf of tasks": (lambda types: {"bolt": common(conf='{"topology.tasks": 1000000000000}')}, "topology.tasks is"),
    "bytes": (lambda types: {"bolt_object": shell("\udcff", b"\xff")}, "script: expected text, given bytes"),  # type: ignore[arg-type]
    "control characters": (
        lambda types: {
            "bolt": common({types.GlobalStreamId("words", "a\x1b[2J"): types.Grouping(shuffle=types.NullStruct())})
        },
        r"streamId of an input must have no control characters, not 'a\\x1b\[2J'",
    ),
    "grouping": (
        lambda types: {
            "bolt": common({types.GlobalStreamId("words", "default"): types.Grouping(custom_serialized=b"x")})
        },
        "its input words is grouped in Java",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_topology_of_commands_is_refused(name: str) -> None:
    changes, message = WRONG[name]
    with pytest.raises(InvalidTopologyError, match=message):
        description(topology(**changes(interface())))


def test_known_java_components_are_taken_and_given_back(inbox: Inbox, tmp_path: Path) -> None:
    leader: Any = Leader(inbox, tmp_path / "code")
    types, uploads = interface(), Uploads()
    sent = topology(
        spout_object=java("org.apache.storm.testing.TestWordSpout", types.JavaObjectArg(bool_arg=False)),
        bolt_object=java("org.apache.storm.testing.TestWordCounter"),
    )
    submit(leader, uploads, "w", uploaded(uploads, inbox, jar(tmp_path)), {}, sent, active=True)
    back = submitted(leader, "w")
    assert description(back) == description(sent)
    assert back.spouts["words"].spout_object.java_object.args_list[0].bool_arg is False
    made = build_submitted(description(sent))
    kinds = {name: type(found.component).__name__ for name, found in made.components.items()}
    assert kinds == {"words": "TestWordSpout", "count": "TestWordCounter"}


def test_a_subscription_to_nothing_and_a_wrong_count_are_refused(inbox: Inbox, tmp_path: Path) -> None:
    leader: Any = Leader(inbox, tmp_path / "code")
    types, uploads = interface(), Uploads()
    nothing = common({types.GlobalStreamId("nobody", "default"): types.Grouping(shuffle=types.NullStruct())})
    depending = topology()
    depending.dependency_jars = ["words.jar"]
    refused: list[tuple[str, dict[str, Any], Any, str]] = [
        ("w", {}, topology(bolt_object=java("a.B")), 'component "count" is the Java class a.B, and Java'),
        ("w", {}, topology(bolt=nothing), "nobody"),
        ("w", {"topology.acker.executors": 10**9}, topology(), r"jsonConf: topology\.acker\.executors is 1000000000"),
        ("a/b", {}, topology(), "can't be the name"),
        ("w", {}, depending, "can't depend on jars"),
    ]
    for name, conf, sent, message in refused:
        location = uploaded(uploads, inbox, jar(tmp_path))
        with pytest.raises(InvalidTopologyError, match=message):
            submit(leader, uploads, name, location, conf, sent, active=True)
        assert files(inbox, tmp_path) == []
    with pytest.raises(CodeError, match="not an upload"):
        submit(leader, uploads, "w", "elsewhere.jar", {}, topology(), active=True)
    with pytest.raises(CodeError, match="not a readable archive"):
        submit(leader, uploads, "w", uploaded(uploads, inbox, b"no archive"), {}, topology(), active=True)
    assert list((tmp_path / "inbox").iterdir()) == []
    assert leader.submitted == []
